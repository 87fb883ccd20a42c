"""What does cloud-init make of these documents?

Reads a list of texts, and writes for each the parts that cloud-init's own classes find (type, file name,
body) and the scripts that it would run, in its order. Nothing is run and nothing is fetched.
"""

import json
import logging
import os
import shutil
import sys

from cloudinit import handlers, subp, user_data
from cloudinit.handlers.shell_script import ShellScriptPartHandler
from cloudinit.helpers import Paths

logging.disable(logging.CRITICAL)


class Reader(user_data.UserDataProcessor):
    """Fetches nothing."""

    def _do_include(self, content, append_msg):
        raise AssertionError("no document of ours includes anything")


class Scripts(ShellScriptPartHandler):
    def __init__(self, folder):
        handlers.Handler.__init__(self, handlers.PER_ALWAYS)
        self.script_dir = folder


def octets(payload):
    """One character for each byte: JSON has no bytes."""
    if isinstance(payload, str):
        payload = payload.encode("utf-8", "surrogateescape")
    return (payload or b"").decode("latin-1")


def main(source, scratch):
    folder = os.path.join(scratch, "scripts")
    reader = Reader(Paths({"cloud_dir": scratch, "run_dir": scratch}))
    ran = []
    subp.subp = lambda command, **_: ran.append(os.path.basename(command[0]))
    with open(source, encoding="utf-8") as file:
        texts = json.load(file)
    answers = []
    for text in texts:
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        scripts, parts = Scripts(folder), []

        def take(_data, name, payload, headers):
            kind = headers["Content-Type"]
            parts.append({"type": kind, "name": name, "body": octets(payload)})
            if kind in scripts.list_types():
                scripts.handle_part(None, kind, name, payload, handlers.PER_ALWAYS)

        handlers.walk(reader.process(text.encode("utf-8")), take, None)
        ran.clear()
        subp.runparts(folder)
        answers.append({"parts": parts, "scripts": list(ran)})
    json.dump(answers, sys.stdout)


main(sys.argv[1], sys.argv[2])
