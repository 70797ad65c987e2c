/** Terminal colours as classes; the library reads the escape codes. */

import Anser from "anser";

export function pieces(text: string): { text: string; class: string }[] {
  return Anser.ansiToJson(text, { use_classes: true, remove_empty: true }).map((piece) => ({
    text: piece.content,
    class: [piece.fg, piece.decorations?.includes("bold") ? "ansi-bold" : ""].filter(Boolean).join(" "),
  }));
}
