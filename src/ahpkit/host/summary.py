"""placeholder"""

F = ("title", "status", "activity", "modifiedAt", "model", "agent", "origin", "interactivity", "workingDirectory")


def chat_summary(s):
    return {k: s[k] for k in ("resource", *F) if k in s}


def diff_chat_summary(a, b):
    return {k: b[k] for k in F if k in b and a.get(k) != b.get(k)} or None


def aggregate(s):
    c = next((c for c in s["chats"] if c["resource"] == s.get("defaultChat")), None)
    return {**s["summary"], **({"status": c["status"]} if c else {})}


def changed_fields(a, b):
    return {k: v for k, v in b.items() if a.get(k) != v} or None


def annotations_summary(uri, s):
    return {
        "resource": uri + "/annotations",
        "annotationCount": len(s["annotations"]),
        "entryCount": sum(len(a["entries"]) for a in s["annotations"]),
    }
