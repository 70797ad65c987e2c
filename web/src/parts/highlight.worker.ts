/** Colours code away from the page's own thread. A language it does not know gets no colours. */

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const known = { bash, cpp, css, diff, go, java, json, markdown, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(known)) hljs.registerLanguage(name, language);
hljs.registerAliases(["js", "jsx", "javascript", "tsx", "ts"], { languageName: "typescript" });
hljs.registerAliases(["c", "h", "c++"], { languageName: "cpp" });
hljs.registerAliases(["shell", "console", "zsh", "sh"], { languageName: "bash" });

self.onmessage = (event: MessageEvent<{ id: number; code: string; language: string }>) => {
  const { id, code, language } = event.data;
  let html: string | undefined;
  try {
    if (hljs.getLanguage(language)) html = hljs.highlight(code, { language, ignoreIllegals: true }).value;
  } catch {
    html = undefined;
  }
  self.postMessage({ id, html });
};
