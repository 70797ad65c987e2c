/** Markdown: every prefix can be drawn, the end equals one drawing at once, and nothing hostile survives. */
// @vitest-environment jsdom

import { beforeEach, describe, expect, it } from "vitest";
import { renderMarkdown, sanitised } from "../../src/parts/safe.ts";
import { MarkdownStream } from "../../src/parts/stream.ts";
import { LONG } from "../scripted/scenes.ts";

let root: HTMLElement;
beforeEach(() => {
  root = document.createElement("div");
});

const html = (fragment: DocumentFragment): string => {
  const box = document.createElement("div");
  box.append(fragment);
  return box.innerHTML;
};

const TEXTS = [LONG, "```py\nprint(1)\n```\n\nafter", "~~~\n```\n~~~\n", "1. a\n   - b\n\n2. c", "| a | b |\n|---|---|\n| 1 | 2 |\n\nend", "a [link][x]\n\n[x]: https://example.com", "````md\n```js\n1\n```\n````\n", "half ```` fence", "word ".repeat(1_500), "Some **bold words** and `code` in a paragraph that does not end, - with 1. marks. ".repeat(100), "**bold ".repeat(900), `| a | b |\n|---|---|\n${"| some words | and more of them |\n".repeat(250)}\nend`, `| a |\n|---|\n| ${"one endless row ".repeat(400)}`];

describe("Markdown that would hold up a parser for minutes", () => {
  it.each(["__a__b", "**a", "*_"])("is plain text: %s", (knot) => {
    const text = knot.repeat(25_000);
    expect(html(renderMarkdown(`# Title\n\n${text}\n\nand **more**`))).toBe(`<h1>Title</h1>\n<p>${text}</p>\n<p>and <strong>more</strong></p>\n`);
  });

  it.each([">", "> ", "1. ", "- "])("is cut off where it is too deep: %s", (nested) => {
    const box = document.createElement("div");
    box.append(renderMarkdown(`${nested.repeat(30_000)}the end\n\nafter`));
    const depths = [...box.querySelectorAll("*")].map((each) => {
      let depth = 0;
      for (let at: Element | null = each; at && at !== box; at = at.parentElement) depth += 1;
      return depth;
    });
    expect(Math.max(...depths)).toBeLessThan(120);
    expect(box.textContent).toContain("the end");
    expect(box.lastElementChild?.textContent).toBe("after");
  });

  it("is none when there are many marks in code, or a few in each of many paragraphs", () => {
    const code = "my_name = __init__(*args)\n".repeat(3_000);
    expect(html(renderMarkdown(`\`\`\`py\n${code}\`\`\`\n\n${"Some **bold** word.\n\n".repeat(900)}`)).match(/<strong>/g)?.length).toBe(900);
  });
});

describe("a stream of Markdown", () => {
  for (const [index, text] of TEXTS.entries())
    it(`draws its prefixes and ends like one drawing (${index})`, () => {
      const stream = new MarkdownStream(root);
      for (let end = 0; end <= text.length; end += text.length > 5_000 ? 997 : text.length > 400 ? 3 : 1) stream.show(text.slice(0, end), false);
      stream.show(text, true);
      const once = document.createElement("div");
      new MarkdownStream(once).show(text, true);
      expect(root.innerHTML).toBe(once.innerHTML);
    });

  it("never touches a settled block again (16)", () => {
    const stream = new MarkdownStream(root);
    stream.show("# Title\n\nfirst\n\nsecond", false);
    const title = root.querySelector("h1");
    const first = root.querySelector("p");
    stream.show("# Title\n\nfirst\n\nsecond and more\n\nthird", false);
    expect(root.querySelector("h1")).toBe(title);
    expect(root.querySelector("p")).toBe(first);
    expect(root.textContent).toContain("third");
  });

  it("draws only the end of a list that does not end, and counts on", () => {
    const stream = new MarkdownStream(root);
    let text = "";
    for (let count = 1; count <= 200; count += 1) {
      text += `${count}. a step with \`code\` and more words about it\n`;
      if (count % 20 === 0) stream.show(text, false);
    }
    const before = new Set(root.querySelectorAll("li"));
    stream.show(`${text}201. last`, false);
    const fresh = [...root.querySelectorAll("li")].filter((each) => !before.has(each));
    expect(fresh.length).toBeLessThan(100);
    expect(root.querySelectorAll("li").length).toBe(201);
    expect(root.lastElementChild?.querySelector("ol")?.start).toBe(201 - (root.lastElementChild?.querySelectorAll("li").length ?? 0) + 1);
    stream.show(`${text}201. last`, true);
    expect(root.querySelectorAll("ol").length).toBe(1);
  });

  it("draws only the end of a table that does not end, and knows what comes after it", () => {
    const stream = new MarkdownStream(root);
    let text = "Before.\n\n| step | what |\n|---|---:|\n";
    for (let count = 1; count <= 150; count += 1) {
      text += `| ${count} | some \`code\` and more words about it |\n`;
      if (count % 20 === 0) stream.show(text, false);
    }
    const before = new Set(root.querySelectorAll("tbody tr"));
    stream.show(`${text}| 151 | la`, false);
    const fresh = [...root.querySelectorAll("tbody tr")].filter((each) => !before.has(each));
    expect(fresh.length).toBeLessThan(100);
    expect([...root.querySelectorAll("tbody tr")].map((each) => each.firstElementChild?.textContent)).toEqual(Array.from({ length: 151 }, (_, index) => String(index + 1)));
    expect(root.querySelectorAll("table:not(.continued)").length).toBe(1);
    expect(root.querySelectorAll(".chunk").length, "a part that is out of sight costs nothing").toBe(root.querySelectorAll(".goes-on").length);
    const end = `${text}| 151 | last |\n\n| another |\n|---|\n| table |\n\n## After`;
    stream.show(end, false);
    expect(root.querySelectorAll("table:not(.continued)").length).toBe(2);
    expect(root.querySelector("h2")?.textContent).toBe("After");
    stream.show(end, true);
    expect(root.querySelectorAll("table").length).toBe(2);
  });

  it("draws only the end of a paragraph that does not end, and of hundreds of blocks", () => {
    const stream = new MarkdownStream(root);
    for (const piece of ["a few words ".repeat(50), "a paragraph of its own\n\n".repeat(25)]) {
      let text = "";
      for (let count = 0; count < 20; count += 1) {
        text += piece;
        stream.show(text, false);
      }
      const before = new Set(root.querySelectorAll("p"));
      stream.show(`${text}and more`, false);
      expect([...root.querySelectorAll("p")].filter((each) => !before.has(each)).length).toBeLessThanOrEqual(1);
      expect(root.lastElementChild?.textContent?.length).toBeLessThan(5_000);
      expect(root.textContent?.replace(/\s+/g, "")).toBe(`${text}andmore`.replace(/\s+/g, ""));
    }
  });

  it("grows an open fence in one text node (16)", () => {
    const stream = new MarkdownStream(root);
    stream.show("```python\na = 1\n", false);
    const node = root.querySelector("code")?.firstChild;
    stream.show("```python\na = 1\nb = 2\n", false);
    expect(root.querySelector("code")?.firstChild).toBe(node);
    expect(node?.textContent).toBe("a = 1\nb = 2\n");
    stream.show("```python\na = 1\nb = 2\n```\n\ndone", false);
    expect(root.querySelectorAll("pre")).toHaveLength(1);
    expect(root.textContent).toContain("done");
  });

  it("takes half a language name and an unknown one (17)", () => {
    const stream = new MarkdownStream(root);
    for (const text of ["```", "```py", "```pyth\n", "```klingon\nQapla'\n```\n"]) stream.show(text, false);
    expect(root.textContent).toContain("Qapla'");
  });
});

const ATTACKS = [
  "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))",
  "[x](data:text/html,<script>alert(1)</script>)", "<iframe src=https://evil.example></iframe>", "<a href='vbscript:x'>x</a>", "<form action=https://evil.example><input name=a></form>",
  "<style>*{background:url(https://evil.example)}</style>", "<p style='background:url(https://evil.example)'>x</p>", "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>", "<base href=https://evil.example>",
  "<meta http-equiv=refresh content='0;url=https://evil.example'>", "<object data=x></object>", "<embed src=x>", "<link rel=stylesheet href=https://evil.example>", "<video src=https://evil.example></video>", "<details open ontoggle=alert(1)>x</details>",
  "<input type=password autofocus onfocus=alert(1)>", "<a id=app name=app>clobber</a>", "![x](https://evil.example/pixel.png)", "<img srcset='https://evil.example 1x'>", "<div class='approval card needs'>fake</div>",
];

describe("hostile Markdown", () => {
  for (const attack of ATTACKS)
    it(`is harmless: ${attack.slice(0, 60)}`, () => {
      const out = html(renderMarkdown(attack));
      const box = document.createElement("div");
      box.innerHTML = out;
      expect(box.querySelector("script, iframe, style, form, object, embed, link, base, meta, svg, math, video, [style], [id], [name], [srcset]")).toBeNull();
      for (const element of box.querySelectorAll("*")) {
        for (const attribute of element.attributes) expect(attribute.name).not.toMatch(/^on/);
        expect(element.getAttribute("href") ?? "https:").toMatch(/^(https?:|mailto:)/);
        if (element.tagName !== "CODE") expect(element.className).toBe("");
      }
      expect(box.querySelector("img")).toBeNull();
    });

  it("links open elsewhere without a way back", () => {
    const link = sanitised("<a href='https://example.com'>x</a>").querySelector("a");
    expect(link?.rel).toBe("noopener noreferrer");
    expect(link?.target).toBe("_blank");
  });
});
