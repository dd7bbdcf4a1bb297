#!/usr/bin/env python3
"""Compares what `gpuio topo` reports about this machine with other installed tools.

    tools/benches/topo_agrees.py PATH-OF-GPUIO

Only Python's standard library is needed. Each tool that is installed is run, and its answer
is compared device by device:

    /sys               each GPU, card and drive: PCI parent, NUMA node, link speed and width
    lspci -vvD, -tv    parent buses, LnkSta of each device, NUMA node (pciutils; LnkSta needs root)
    lstopo             PCI functions, their bridge, the names of disks and interfaces (hwloc 2), and
                       that hwloc takes what `gpuio topo --format hwloc-xml` wrote
    nvidia-smi         --query-gpu: number, PCI address, UUID, name, generation and width at most;
                       topo -m: the class of each pair of GPUs, and of GPUs and network cards

Prints one line per question: `same`, `DIFFERS` with both answers, or `absent` with the reason.
Exit code 1 if anything differs. A GPU's link now may change between two readings as it saves
power, so what it can do at most is compared.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

DIFFERING = []


def compare(question, ours, theirs):
    if ours == theirs:
        print(f"same     {question}: {ours}")
    else:
        DIFFERING.append(question)
        print(f"DIFFERS  {question}: gpuio {ours!r}, other {theirs!r}")


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def known(fact):
    return fact.get("known") if isinstance(fact, dict) else fact


def knots(topo):
    """Each knot of the tree with its address, and the addresses of knots above it."""
    out = {}

    def walk(knot, above):
        out[knot["address"]] = (knot, above)
        for below in knot["below"]:
            walk(below, above + [knot["address"]])

    for branch in topo["tree"]:
        for bridge in branch["host_bridges"]:
            for knot in bridge["below"]:
                walk(knot, [])
    return out


def read(*parts):
    try:
        with open(os.path.join(*parts), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return None


def speed_of(text):
    """`8.0 GT/s PCIe` or `8GT/s` in millions of transfers."""
    found = re.match(r"([\d.]+) ?GT/s", text or "")
    return round(float(found.group(1)) * 1000) if found else None


def only_node():
    """The machine's NUMA node where it has but one: firmware then names none at functions."""
    nodes = re.findall(r"node(\d+)", " ".join(os.listdir("/sys/devices/system/node")))
    return int(nodes[0]) if len(nodes) == 1 else None


def against_sys(topo):
    tree = knots(topo)
    for device in topo["devices"]:
        for address in device["pci"]:
            path = os.path.join("/sys/bus/pci/devices", address)
            node = int(read(path, "numa_node") or -1)
            node = node if node >= 0 else only_node()
            compare(f"sys, node of {device['name']}", device["node"], node)
            knot, above = tree[address]
            real = [p for p in os.path.realpath(path).split("/") if re.fullmatch(r"[\da-f]{4,}:[\da-f]{2}:[\da-f]{2}\.\d", p)]
            compare(f"sys, way of {device['name']}", [a for a in above if a in real], above)
            compare(f"sys, port of {device['name']}", knot["port"], real[-2] if len(real) > 1 else None)
            link = knot["link"] or {"now": {}, "device_most": {}}
            width = int(read(path, "max_link_width") or 0)
            most = (speed_of(read(path, "max_link_speed")), width if 1 <= width <= 32 else None)
            told = (link["device_most"].get("mega_transfers"), link["device_most"].get("width"))
            compare(f"sys, link of {device['name']} at most", told, most)


def against_lspci(topo):
    if not shutil.which("lspci"):
        print("absent   lspci: not installed (package pciutils)")
        return
    listing = run("lspci", "-vvD")
    blocks = {b.split(" ", 1)[0]: b for b in re.split(r"\n\n", listing) if b.strip()}
    # The tree with domains: each device below the bus that its bridge leads to.
    bridges = {}
    for address, block in blocks.items():
        found = re.search(r"secondary=([\da-f]{2})", block)
        if found and found.group(1) != "00":
            bridges[address.rsplit(":", 1)[0][:5] + found.group(1)] = address
    tree = knots(topo)
    for device in topo["devices"]:
        for address in device["pci"]:
            block = blocks.get(address)
            compare(f"lspci, {device['name']} is there", True, block is not None)
            if block is None:
                continue
            parent = bridges.get(address.rsplit(":", 1)[0])
            compare(f"lspci, bridge above {device['name']}", tree[address][0]["port"], parent)
            node = re.search(r"NUMA node: (\d+)", block)
            node = int(node.group(1)) if node else only_node()
            compare(f"lspci, node of {device['name']}", device["node"], node)
            capability = re.search(r"LnkCap:.*Speed ([\d.]+GT/s), Width x(\d+)", block)
            if capability is None:
                print(f"absent   lspci, link of {device['name']}: no LnkCap (not PCI Express, or not root)")
                continue
            link = tree[address][0]["link"] or {"device_most": {}}
            told = (link["device_most"].get("mega_transfers"), link["device_most"].get("width"))
            theirs = (speed_of(capability.group(1)), int(capability.group(2)))
            compare(f"lspci, link of {device['name']} at most", told, theirs)


def against_hwloc(topo, gpuio):
    lstopo = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
    if not lstopo:
        print("absent   lstopo: not installed (package hwloc)")
        return
    theirs = hwloc_devices(run(lstopo, "--of", "xml", "--whole-io"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpuio.xml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(run(gpuio, "topo", "--format", "hwloc-xml"))
        ours = hwloc_devices(run(lstopo, "-i", path, "--of", "xml", "--whole-io"))
    for device in topo["devices"]:
        for address in device["pci"]:
            compare(f"hwloc, names and bridge of {address}", ours.get(address), theirs.get(address))


def hwloc_devices(text):
    """Functions with the names of disks, interfaces and RDMA devices, and the bridge above."""
    out = {}

    def walk(one, bridge):
        address = one.get("pci_busid")
        if one.get("type") == "PCIDev":
            names = [n.get("name") for n in one.iter("object") if n.get("osdev_type") in ("0", "2", "3")]
            out[address] = (sorted(names), bridge)
        for below in one.findall("object"):
            walk(below, address if one.get("type") == "Bridge" else bridge)

    walk(xml.etree.ElementTree.fromstring(text.encode()), None)
    return out


def against_query(topo):
    fields = "index,pci.bus_id,uuid,name,pcie.link.gen.max,pcie.link.width.max"
    rows = run("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader").strip().splitlines()
    gpus = {d["name"]: d for d in topo["devices"] if d["kind"] == "gpu"}
    compare("nvidia-smi, GPUs", len(gpus), len(rows))
    for row in rows:
        index, bus, uuid, name, _, width = [part.strip() for part in row.split(",")]
        gpu = gpus.get(f"GPU{index}")
        if gpu is None:
            compare(f"nvidia-smi, GPU{index}", None, row)
            continue
        domain, rest = bus.lower().split(":", 1)
        compare(f"nvidia-smi, address of GPU{index}", gpu["pci"], [f"{domain[-4:]}:{rest}"])
        compare(f"nvidia-smi, UUID of GPU{index}", uuid in gpu["also"], True)
        compare(f"nvidia-smi, name of GPU{index}", gpu["model"], name)
        knot = knots(topo).get(gpu["pci"][0], ({"link": None}, []))[0]
        if knot["link"] and width.isdigit():
            compare(f"nvidia-smi, width of GPU{index} at most", knot["link"]["most"]["width"], int(width))


def against_matrix(topo):
    text = re.sub(r"\x1b\[[\d;]*m", "", run("nvidia-smi", "topo", "-m"))
    lines = [line for line in text.splitlines() if line.strip()]
    columns = [c.strip() for c in lines[0].split("\t") if re.fullmatch(r"(GPU|NIC)\d+|\w+_\d+", c.strip())]
    legend = dict(re.findall(r"(NIC\d+): (\S+)", text))
    routes = {}
    for route in topo["routes"]:
        links = known(route["nvlinks"])
        cell = f"NV{links}" if links else known(route["class"])
        routes[route["a"], route["b"]] = routes[route["b"], route["a"]] = cell
    names = {d["name"]: d["name"] for d in topo["devices"]}
    for device in topo["devices"]:
        names.update({other: device["name"] for other in device["also"]})
    for line in lines[1:]:
        cells = [part.strip() for part in line.split("\t")]
        if cells[0] not in columns:
            continue
        for column, cell in zip(columns, cells[1:]):
            a, b = (names.get(legend.get(n, n)) for n in (cells[0], column))
            if cell != "X" and cells[0] < column:
                compare(f"nvidia-smi topo, {cells[0]} to {column}", routes.get((a, b)), cell)
    for row in topo["affinity"]:
        for line in lines[1:]:
            cells = [part.strip() for part in line.split("\t")]
            if cells[0] == row["gpu"]:
                node = next((c for c in cells[len(columns) + 2 :] if c.isdigit()), None)
                compare(f"nvidia-smi topo, node of {row['gpu']}", row["node"], int(node) if node else None)


def main():
    gpuio = sys.argv[1] if len(sys.argv) > 1 else "gpuio"
    topo = json.loads(run(gpuio, "topo", "--format", "json"))
    against_sys(topo)
    against_lspci(topo)
    against_hwloc(topo, gpuio)
    if shutil.which("nvidia-smi") and run("nvidia-smi", "-L").strip():
        against_query(topo)
        against_matrix(topo)
    else:
        print("absent   nvidia-smi: not installed, or it knows no GPU")
    print(f"{len(DIFFERING)} differ")
    return 1 if DIFFERING else 0


if __name__ == "__main__":
    sys.exit(main())
