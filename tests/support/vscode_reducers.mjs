// Reduces with the reducers that VS Code ships: one JSON line {kind, state, action} in, one line with the state out.
// Usage: node vscode_reducers.mjs FOLDER
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(process.argv[2] + "/");
const kinds = { root: "root", session: "session", chat: "chat", terminal: "terminal", annotations: "annotations", changeset: "changeset" };
const reducers = {};
for (const [kind, name] of Object.entries(kinds)) {
	const module = await import(new URL(`channels-${name}/reducer.js`, folder));
	reducers[kind] = module[`${name}Reducer`];
}

for await (const line of createInterface({ input: process.stdin })) {
	const { kind, state, action } = JSON.parse(line);
	let answer;
	try {
		answer = { state: reducers[kind](state, action, () => {}) };
	} catch (error) {
		answer = { error: String(error) };
	}
	process.stdout.write(JSON.stringify(answer) + "\n");
}
