"""What the guest `tiny` makes of networkData: a table of what people write, in both versions of cloud-init's network configuration, and of
what it means there (and in netplan, whose form the second version is)."""

import pathlib
import shutil
import subprocess
import tempfile
import textwrap
import unittest

GUEST = pathlib.Path(__file__).resolve().parents[2] / "crates" / "machines" / "image" / "guest"
# The guest's own, where it is there.
AWK = ["busybox", "awk"] if shutil.which("busybox") else ["awk"]

# Why; what is written; the commands that it becomes. `for` is about interfaces by name, hardware address, or pattern.
TABLE = [
    ("a name and DHCP", """
        version: 2
        ethernets:
          enp1s0:
            dhcp4: true
     """, ["for enp1s0 '' ''", "net_dhcp"]),
    ("below `network`, as netplan has it", """
        network:
          version: 2
          renderer: networkd
          ethernets: {eth0: {dhcp4: yes, optional: true}}
     """, ["for eth0 '' ''", "net_dhcp"]),
    ("by hardware address the name of the entry means nothing, and `set-name` gives one", """
        version: 2
        ethernets:
          nic0:
            match: {macaddress: "02:00:00:AA:bb:01"}
            set-name: lan0
            dhcp4: true
     """, ["for '' 02:00:00:AA:bb:01 ''", "net_rename lan0", "net_dhcp"]),
    ("by a pattern of names", """
        version: 2
        ethernets:
          all:
            match:
              name: "e*"
            dhcp4: true
     """, ["for '' '' 'e*'", "net_dhcp"]),
    ("everything that stays, with the old form of the router", """
        version: 2
        ethernets:
          eth0:
            addresses: [10.88.0.7/16, "fd00::7/64"]
            gateway4: 10.88.0.1
            mtu: 1400
            nameservers:
              addresses: [10.88.0.1, 10.88.0.2]
              search: [lab.example, example]
     """, ["for eth0 '' ''", "net_mtu 1400", "net_address 10.88.0.7/16", "net_address fd00::7/64", "net_route default 10.88.0.1",
           "net_dns 10.88.0.1", "net_dns 10.88.0.2", "net_search lab.example", "net_search example"]),
    ("routes, with the new form of the router", """
        version: 2
        ethernets:
          eth0:
            dhcp4: false
            addresses:
            - 10.88.0.7/16
            routes:
            - to: default
              via: 10.88.0.1
            - to: 192.0.2.0/24
              via: 10.88.0.9
              metric: 50
     """, ["for eth0 '' ''", "net_address 10.88.0.7/16", "net_route default 10.88.0.1", "net_route 192.0.2.0/24 10.88.0.9"]),
    ("two cards", """
        version: 2
        ethernets:
          enp1s0: {dhcp4: true}
          enp2s0: {addresses: [192.168.7.1/24]}
     """, ["for enp1s0 '' ''", "net_dhcp", "for enp2s0 '' ''", "net_address 192.168.7.1/24"]),
    ("IPv6's DHCP is another, and there is none here", """
        version: 2
        ethernets: {eth0: {dhcp6: true}}
     """, ["for eth0 '' ''", "unsupported 'network-config dhcp6'"]),
    ("beside IPv4's it is no fault", """
        version: 2
        ethernets: {eth0: {dhcp4: true, dhcp6: true}}
     """, ["for eth0 '' ''", "net_dhcp"]),
    ("what it cannot do is said", """
        version: 2
        ethernets: {eth0: {dhcp4: true}}
        bonds: {bond0: {interfaces: [eth0]}}
     """, ["for eth0 '' ''", "net_dhcp", "unsupported 'network-config bonds'"]),
    ("the first version: DHCP", """
        version: 1
        config:
        - type: physical
          name: eth0
          subnets:
          - type: dhcp
     """, ["for eth0 '' ''", "net_dhcp"]),
    ("with a hardware address the name is one that the card gets", """
        network:
          version: 1
          config:
          - type: physical
            name: lan0
            mac_address: "02:00:00:00:00:01"
            mtu: 1400
            subnets: [{type: dhcp4}]
     """, ["for '' 02:00:00:00:00:01 ''", "net_rename lan0", "net_mtu 1400", "net_dhcp"]),
    ("an address by mask, by length, and by neither", """
        version: 1
        config:
        - type: physical
          name: eth0
          subnets:
          - type: static
            address: 10.88.0.7
            netmask: 255.255.0.0
            gateway: 10.88.0.1
            dns_nameservers: [10.88.0.1]
            dns_search: lab.example
          - {type: static, address: 10.9.0.7/24}
          - {type: static, address: 10.10.0.7}
          - {type: static6, address: "fd00::7"}
          - {type: manual}
     """, ["for eth0 '' ''", "net_netmask 10.88.0.7 255.255.0.0", "net_route default 10.88.0.1", "net_dns 10.88.0.1", "net_search lab.example",
           "net_address 10.9.0.7/24", "net_address 10.10.0.7/24", "net_address fd00::7/64"]),
    ("routes of a subnet, and of the whole", """
        version: 1
        config:
        - type: physical
          name: eth0
          subnets:
          - type: dhcp
            routes:
            - {network: 192.0.2.0, netmask: 255.255.255.0, gateway: 10.88.0.9}
            - {destination: 198.51.100.0/24, gateway: 10.88.0.9}
        - {type: route, destination: 203.0.113.0/24, gateway: 10.88.0.9}
     """, ["for eth0 '' ''", "net_dhcp", "net_route_by_mask 192.0.2.0 255.255.255.0 10.88.0.9", "net_route 198.51.100.0/24 10.88.0.9",
           "interface=", "net_route 203.0.113.0/24 10.88.0.9"]),
    ("name servers of all", """
        version: 1
        config:
        - type: nameserver
          address: [10.88.0.1]
          search: [lab.example]
     """, ["net_dns 10.88.0.1", "net_search lab.example"]),
    ("what the first version has and tiny has not", """
        version: 1
        config:
        - {type: bond, name: bond0, bond_interfaces: [eth0]}
        - {type: physical, name: eth0, subnets: [{type: ipv6_slaac}]}
     """, ["unsupported 'network-config type bond'", "for eth0 '' ''", "unsupported 'network-config ipv6_slaac'"]),
    ("nothing is to be done", "network: {config: disabled}", ["configured=1"]),
    ("neither version", "version: 3", ["error 'network-config: its version is neither 1 nor 2'"]),
    ("no YAML", "version: [2", None),
]


def commands(text):
    """What becomes of a configuration, without the shell around it."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(textwrap.dedent(text))
        file.flush()
        done = subprocess.run([*AWK, "-v", "kind=network", "-f", str(GUEST / "cloud.awk"), file.name],
                              capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    plain = []
    for number, line in enumerate(lines):
        if line.startswith("for interface in $(net_interfaces "):
            plain.append("for " + line.removeprefix("for interface in $(net_interfaces ").removesuffix("); do"))
        elif line == "done" or (line == "configured=1" and lines[number + 1:number + 2] and lines[number + 1].startswith("for ")):
            pass
        else:
            plain.append(line)
    check = subprocess.run(["sh", "-n"], input=done.stdout, capture_output=True, text=True)
    assert check.returncode == 0, f"{check.stderr}: {done.stdout}"
    return plain


class NetworkData(unittest.TestCase):
    def test_it_means_what_it_means_to_cloud_init(self):
        for why, text, expected in TABLE:
            with self.subTest(why):
                said = commands(text)
                if expected is None:
                    self.assertTrue(len(said) == 1 and said[0].startswith("error 'network data: line"), said)
                else:
                    # What needs no quotes may have them.
                    bare = [" ".join(word.strip("'") or "''" for word in line.split(" ")) for line in said]
                    wanted = [" ".join(word.strip("'") or "''" for word in line.split(" ")) for line in expected]
                    self.assertEqual(bare, wanted)


if __name__ == "__main__":
    unittest.main()
