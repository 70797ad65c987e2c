/** Terminal colours as classes; the library reads the escape codes. */

import Anser from "anser";

/** Text without a known colour keeps the normal one, which can be read on any background. */
const COLOUR = /^ansi-(bright-)?(red|green|yellow|blue|cyan|magenta)$|^ansi-bright-black$/;

export function pieces(text: string): { text: string; class: string }[] {
  return Anser.ansiToJson(text, { use_classes: true, remove_empty: true }).map(({ content, fg, decorations }) => ({
    text: content,
    class: [COLOUR.test(fg ?? "") ? `${fg}-fg` : "", ...(decorations ?? []).filter((each) => each === "bold" || each === "dim" || each === "underline").map((each) => `ansi-${each}`)].filter(Boolean).join(" "),
  }));
}
