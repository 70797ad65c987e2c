/** Content that is kept outside of the state: pictures in the host's own store are shown at once, everything else on request. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ContentRef } from "../ahp/index.ts";
import { read, readText } from "../mirror/store.ts";
import { size } from "./markdown.tsx";
import { Output } from "./output.tsx";

const PICTURE = /^image\/(png|jpeg|gif|webp|avif)\b/;
const WORDS = /^text\/|[/+](json|xml|yaml|toml|javascript)\b/;
const AT_ONCE = 4_000_000;

type Shown = { picture: string } | { text: string } | { file: string } | { error: string } | undefined;

async function load({ uri, contentType }: ContentRef): Promise<Shown> {
  try {
    const { data, encoding, contentType: told } = await read(uri);
    const type = told ?? contentType ?? "";
    if (encoding !== "base64") return { text: data };
    if (PICTURE.test(type)) return { picture: `data:${type};base64,${data}` };
    if (WORDS.test(type)) return { text: (await readText(uri)) ?? "" };
    return { file: `data:application/octet-stream;base64,${data}` };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

export function Referred({ content }: { content: ContentRef }): JSX.Element {
  const [shown, set] = useState<Shown>(undefined);
  const atOnce = content.uri.startsWith("ahp-content:") && PICTURE.test(content.contentType ?? "") && (content.sizeHint ?? 0) <= AT_ONCE;
  const open = (): void => void load(content).then(set);
  useEffect(() => {
    if (atOnce) open();
  }, [content.uri]);
  const what = `${content.contentType ?? "the content"}${content.sizeHint ? ` (${size(content.sizeHint)})` : ""}`;
  if (!shown) return atOnce ? <p class="small muted">Loading the picture…</p> : <div><button type="button" class="btn" onClick={open}>Load {what}</button></div>;
  if ("picture" in shown) return <a class="picture" href={shown.picture} download="picture" title="Save this picture"><img alt="Picture by the agent" src={shown.picture} /></a>;
  if ("text" in shown) return <Output text={shown.text} />;
  if ("file" in shown) return <div><a class="btn" href={shown.file} download="content">Save {what}</a></div>;
  return <p class="small danger break">It cannot be read: {shown.error}</p>;
}
