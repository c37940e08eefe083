#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""record.py --controller PROGRAM --agent PROGRAM --devcluster PROGRAM [--out FILE]

Plays the life of a volume on the embedded cluster, from the claim to its removal, with a controller
and an agent that may be of different versions, and writes down what the two say to each other: one
line for each request, with its answer, both byte for byte. Between them stands this script, as a
server of its own to the agent and as a client to the controller. What a version said is recorded
once and kept here; agent_versions_test.cpp plays it to the versions after it.

Needs kubectl, openssl. Exit: 0 the volume came and went; 1 it did not.
"""
import argparse
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

NAMESPACE = "local-path-storage"
BASE = "/opt/local-path-provisioner"
HELPER = """{"apiVersion":"v1","kind":"Pod","metadata":{"name":"helper-pod"},
"spec":{"containers":[{"name":"helper-pod","image":"busybox"}]}}"""


class Line:
    """Passes requests on, and writes them down in the order of their answers."""

    def __init__(self, folder, controller_port):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
             "/CN=recorder", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
             f"{folder}/key.pem", "-out", f"{folder}/ca.pem"], check=True, capture_output=True)
        self.ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ours.load_cert_chain(f"{folder}/ca.pem", f"{folder}/key.pem")
        self.theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.theirs.check_hostname = False
        self.theirs.verify_mode = ssl.CERT_NONE
        self.controller_port = controller_port
        self.lock = threading.Lock()
        self.exchanges = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            raw, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(raw,), daemon=True).start()

    def serve(self, raw):
        try:
            agent = self.ours.wrap_socket(raw, server_side=True)
            controller = self.theirs.wrap_socket(
                socket.create_connection(("127.0.0.1", self.controller_port)))
            while True:
                head, request = message(agent)
                controller.sendall(head + request)
                answer_head, answer = message(controller)
                with self.lock:
                    self.exchanges.append({"target": head.split(b" ")[1].decode(),
                                           "request": request.decode(),
                                           "status": int(answer_head.split(b" ")[1]),
                                           "answer": answer.decode()})
                agent.sendall(answer_head + answer)
        except (OSError, EOFError):
            raw.close()

    def lines(self):
        with self.lock:
            lines = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in self.exchanges)
        # It stands in the names of sessions, which are nobody's business.
        return lines.replace(socket.gethostname() + "_", "")


def message(peer):
    """Its head and its body."""
    text = b""
    while b"\r\n\r\n" not in text:
        text += more_of(peer)
    head, _, body = text.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                  if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += more_of(peer)
    return head + b"\r\n\r\n", body


def more_of(peer):
    got = peer.recv(65536)
    if not got:
        raise EOFError
    return got


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def wait(what, holds, limit=60):
    for _ in range(limit * 10):
        found = holds()
        if found:
            return found
        time.sleep(0.1)
    sys.exit(f"record.py: this did not come: {what}")


class Cluster:
    def __init__(self, folder):
        self.config = f"{folder}/kubeconfig"

    def kubectl(self, *arguments, text=None):
        done = subprocess.run(["kubectl", "--kubeconfig", self.config, *arguments], input=text,
                              capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""

    def apply(self, *objects):
        for one in objects:
            wait(f"{one['kind']} is made",
                 lambda o=one: self.kubectl("create", "--validate=false", "-f", "-",
                                            text=json.dumps(o)))


def objects():
    meta = {"namespace": NAMESPACE}
    account = {"apiVersion": "v1", "kind": "ServiceAccount",
               "metadata": {**meta, "name": "local-path-provisioner-agent"}}
    config = json.dumps({"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES",
                                          "paths": [BASE]}]})
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        account,
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "name": "agent-node-1"},
         "spec": {"nodeName": "node-1", "serviceAccountName": account["metadata"]["name"],
                  "containers": [{"name": "agent", "image": "busybox",
                                  "command": ["sleep", "100000"]}]}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**meta, "name": "local-path-config"},
         "data": {"config.json": config, "helperPod.yaml": HELPER,
                  "setup": "#!/bin/sh\nmkdir -m 0777 -p \"$VOL_DIR\"\n",
                  "teardown": "#!/bin/sh\nrm -rf \"$VOL_DIR\"\n"}},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
         "metadata": {"name": "local-path"}, "provisioner": "rancher.io/local-path",
         "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"},
    ]


def claim():
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": "default", "name": "data",
                         "annotations": {"volume.kubernetes.io/selected-node": "node-1"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local-path",
                     "resources": {"requests": {"storage": "1Mi"}}}}


def play(options, folder, run):
    cluster = Cluster(folder)
    run([options.devcluster, "--nodes", "1", "--dir", folder, "--kubeconfig-out", cluster.config])
    cluster.apply(*objects())
    port = free_port()
    run([options.controller, "start", "--debug", "--kubeconfig", cluster.config, "--agents",
         "--agents-port", str(port), "--health-port", "0"])
    line = Line(folder, port)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
               "spec": {"audiences": ["local-path-provisioner-agent"], "expirationSeconds": 3600,
                        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1",
                                           "name": "agent-node-1"}}}
    answer = wait("a token of the agent", lambda: cluster.kubectl(
        "create", "--raw", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/"
        "local-path-provisioner-agent/token", "-f", "-", text=json.dumps(request)))
    token = json.loads(answer)["status"]["token"]
    with open(f"{folder}/token", "w", encoding="utf-8") as file:
        file.write(token)
    os.makedirs(folder + "/nodes/node-1" + BASE, exist_ok=True)
    wait("the port of the controller", lambda: cluster.kubectl(
        "-n", NAMESPACE, "get", "configmap", "local-path-provisioner-agents-ca"))
    run([options.agent, "agent", "--debug", "--controller", f"https://127.0.0.1:{line.port}",
         "--ca-file", f"{folder}/ca.pem", "--token-file", f"{folder}/token", "--root",
         folder + "/nodes/node-1"])
    wait("a session", lambda: "/agent/v1/tell" in line.lines())
    cluster.apply(claim())
    disk = folder + "/nodes/node-1" + BASE
    directories = lambda: [one for one in os.listdir(disk) if one.startswith("pvc-")]
    wait("the volume", lambda: "Bound" in cluster.kubectl("get", "pvc", "data"))
    made = wait("its directory", directories)
    with open(f"{disk}/{made[0]}/file", "w", encoding="utf-8") as file:
        file.write("data")
    cluster.kubectl("delete", "pvc", "data", "--wait=false")
    wait("the end of the volume", lambda: not cluster.kubectl("get", "pv", "-o", "name"))
    wait("the end of its directory", lambda: not directories())
    if cluster.kubectl("-n", NAMESPACE, "get", "pods", "-o", "name").count("pod/") > 1:
        sys.exit("record.py: a helper pod has worked beside the agent")
    time.sleep(1)  # the last order: to forget
    return line.lines()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("controller", "agent", "devcluster"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--out")
    options = parser.parse_args()
    started = []
    with tempfile.TemporaryDirectory(prefix="lpp-record-") as folder:
        log = open(f"{folder}/log", "w", encoding="utf-8")

        def run(command):
            started.append(subprocess.Popen(command, stdout=log, stderr=log))

        try:
            lines = play(options, folder, run)
        except SystemExit:
            with open(f"{folder}/log", encoding="utf-8") as text:
                sys.stderr.write(text.read()[-6000:])
            raise
        finally:
            for one in reversed(started):
                one.terminate()
            for one in started:
                one.wait()
            log.close()
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(lines)
    print(f"the volume came and went, in {lines.count(chr(10))} requests")


if __name__ == "__main__":
    main()
