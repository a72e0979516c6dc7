// The address of a client, for limits on failed authentications. Behind a proxy, every connection comes from the proxy.

import { BlockList, isIP } from 'node:net';
import type { IncomingMessage } from 'node:http';
import { usageError } from '../../core/errors.js';

/** A header is read from its end, and never further than this many addresses. */
const HOPS_MAX = 16;

/** Returns the address of the client of a request. Never throws. */
export type FindClientAddress = (request: Pick<IncomingMessage, 'headers' | 'socket'>) => string;

/**
 * The address of the nearest client that is not a trusted proxy: what proxies wrote is true, what a client wrote may
 * not be.
 * @param trustedProxies addresses, or networks such as `10.0.0.0/8`. Empty: the header is never read
 * @throws UsageError for an invalid address
 */
export function clientAddressFinder(trustedProxies: readonly string[]): FindClientAddress {
  const trusted = new BlockList();
  for (const text of trustedProxies) addNetwork(trusted, text);
  const isTrusted = (address: string): boolean =>
    isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  return ({ headers, socket }) => {
    let address = plainAddress(socket.remoteAddress ?? '');
    if (trustedProxies.length === 0) return address;
    const header = headers['x-forwarded-for'];
    const hops = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',').slice(-HOPS_MAX);
    while (isTrusted(address)) {
      const hop = plainAddress(hops.pop()?.trim() ?? '');
      if (isIP(hop) === 0) return address;
      address = hop;
    }
    return address;
  };
}

function addNetwork(list: BlockList, text: string): void {
  const [address = '', prefix, ...rest] = text.split('/');
  const version = isIP(address);
  const bitsMax = version === 6 ? 128 : 32;
  const bits = prefix === undefined ? bitsMax : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
  if (version === 0 || rest.length > 0 || !(bits <= bitsMax)) {
    throw usageError(`trusted proxy ${JSON.stringify(text)}: an IP address, or a network such as 10.0.0.0/8`);
  }
  list.addSubnet(address, bits, version === 6 ? 'ipv6' : 'ipv4');
}

/** An IPv4 address of a socket for both protocols is written as IPv6. */
const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/iu, '');
