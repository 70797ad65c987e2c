"use strict";
// Shared by the pages: what was heard from the host, and what the user did. The page brings `show(document)`.
const base = new URL("./", location.href).href;
const $ = (selector) => document.querySelector(selector);
const say = (text) => { $("#say").textContent = text; };

async function change(action, input) {
  const body = JSON.stringify({ key: "__KEY__", action, input });
  try {
    const answer = await (await fetch(base + "change", { method: "POST", body })).json();
    say(answer.error ? answer.error.message : "");
  } catch { say("The host cannot be reached."); }
}

async function follow(show) {
  for (let version = 0; ;) {
    try {
      const answer = await fetch(base + "news?after=" + version);
      if (answer.status === 410) { say("This canvas is closed."); return; }
      if (!answer.ok) throw new Error(answer.status);
      const news = await answer.json();
      if (news.version !== version) show(news.data);
      version = news.version;
    } catch { await new Promise((done) => setTimeout(done, 2000)); }
  }
}
