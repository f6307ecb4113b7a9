// Addresses that a host admitted only by a wildcard must not have: private, local, and reserved ones.

import { BlockList, isIP } from 'node:net';

const blocked = new BlockList();

// IPv4-mapped IPv6 addresses are matched against the IPv4 ranges by BlockList itself.
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  blocked.addSubnet(network, prefix, 'ipv4');
}

for (const [network, prefix] of [
  // The unspecified address, loopback, and IPv4 in disguise.
  ['::', 96],
  // Translations of IPv4 addresses, which may be private ones: NAT64, Teredo, 6to4.
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2001::', 32],
  ['2002::', 16],
  ['100::', 64],
  ['2001:db8::', 32],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const) {
  blocked.addSubnet(network, prefix, 'ipv6');
}

/** True for anything that is not a public address, also for text that is no address at all. */
export function isPrivateAddress(address: string): boolean {
  const plain = address.replace(/%.*$/, '');
  const family = isIP(plain);
  return family === 0 || blocked.check(plain, family === 4 ? 'ipv4' : 'ipv6');
}
