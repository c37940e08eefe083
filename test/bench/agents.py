#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""agents.py relay --port PORT --to PORT --seconds N
agents.py hold --port PORT --api PORT --pki DIR --namespace NS --nodes N

relay passes a real agent's connections on to the controller, and says of so many seconds how many
bytes went each way, once the session has stood for a while: the payload of TCP, so TLS's records and
no headers of IP.

hold is the agents of hollow-0, hollow-1, … as the controller sees idle ones: each with a token of its
own pod, one connection, a session, and a poll that it begins anew. They have no volumes and take no
orders. Says "ready" when all hold their polls, and goes on until it is ended.
"""
import argparse
import asyncio
import json
import ssl
import sys

ACCOUNT = "local-path-provisioner-agent"
AT_REST = 10
AT_ONCE = 50  # connections that have shown no token yet


async def relay(options):
    counts = {"sent": 0, "received": 0}

    async def pump(reader, writer, what):
        try:
            while data := await reader.read(65536):
                counts[what] += len(data)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    async def serve(reader, writer):
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", options.to)
        await asyncio.gather(pump(reader, to_writer, "sent"), pump(to_reader, writer, "received"))

    async with await asyncio.start_server(serve, "127.0.0.1", options.port):
        print("ready", flush=True)
        while not counts["received"]:
            await asyncio.sleep(0.1)
        await asyncio.sleep(AT_REST)  # what a session has to say at its beginning
        before = dict(counts)
        await asyncio.sleep(options.seconds)
        print(json.dumps({"seconds": options.seconds,
                          **{name: counts[name] - before[name] for name in counts}}), flush=True)


async def ask(stream, target, body, token=""):
    reader, writer = stream
    data = json.dumps(body).encode()
    lines = [f"POST {target} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json",
             f"Content-Length: {len(data)}"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    writer.write("\r\n".join(lines + ["", ""]).encode() + data)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n")
                   if line.lower().startswith(b"content-length:")), 0)
    text = await reader.readexactly(length)
    status = int(head.split(b" ")[1])
    if status not in (200, 201):
        sys.exit(f"agents.py: {target}: {status} {text.decode()}")
    return json.loads(text)


async def token_of(options, node):
    context = ssl.create_default_context(cafile=f"{options.pki}/ca.crt")
    context.load_cert_chain(f"{options.pki}/admin.crt", f"{options.pki}/admin.key")
    stream = await asyncio.open_connection("127.0.0.1", options.api, ssl=context,
                                           server_hostname="localhost")
    answer = await ask(
        stream, f"/api/v1/namespaces/{options.namespace}/serviceaccounts/{ACCOUNT}/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
         "spec": {"audiences": [ACCOUNT], "expirationSeconds": 7200,
                  "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": f"agent-{node}"}}})
    stream[1].close()
    return answer["status"]["token"]


async def hold_one(options, node, gate, holding):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    async with gate:
        token = await token_of(options, node)
        stream = await asyncio.open_connection("127.0.0.1", options.port, ssl=context)
        welcome = await ask(stream, "/agent/v1/hello", {"protocol": 1, "program": "hollow"}, token)
        session = welcome["session"]
        bases = [{"path": path, "promised": 0, "volumes": 0, "identity": f"disk-of-{node}",
                  "space": {"size": 1 << 40, "free": 1 << 39, "inodes": 1 << 24,
                            "freeInodes": 1 << 23}} for path in welcome["basePaths"]]
        await ask(stream, "/agent/v1/tell", {"session": session, "everything": True,
                                             "bases": bases}, token)
    holding.release()
    taken = 0
    while True:
        orders = await ask(stream, "/agent/v1/poll", {"session": session, "taken": taken}, token)
        taken = max([taken] + [one["number"] for one in orders.get("orders", [])])


async def hold(options):
    gate = asyncio.Semaphore(AT_ONCE)
    holding = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(hold_one(options, f"hollow-{i}", gate, holding))
             for i in range(options.nodes)]

    async def say():
        for _ in range(options.nodes):
            await holding.acquire()
        print("ready", flush=True)

    await asyncio.gather(say(), *tasks)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("relay")
    one.set_defaults(run=relay)
    for name in ("port", "to", "seconds"):
        one.add_argument("--" + name, type=int, required=True)
    one = commands.add_parser("hold")
    one.set_defaults(run=hold)
    for name in ("port", "api", "nodes"):
        one.add_argument("--" + name, type=int, required=True)
    for name in ("pki", "namespace"):
        one.add_argument("--" + name, required=True)
    options = parser.parse_args()
    asyncio.run(options.run(options))


if __name__ == "__main__":
    main()
