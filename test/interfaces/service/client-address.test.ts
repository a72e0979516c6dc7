import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { IncomingMessage } from 'node:http';
import { clientAddressFinder } from '../../../src/interfaces/service/request-admission.js';

const requestFrom = (remoteAddress: string, forwarded?: string | string[]) =>
  ({
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    socket: { remoteAddress },
  }) as unknown as IncomingMessage;

describe('the address of a client', () => {
  const find = clientAddressFinder(['10.0.0.0/8', '127.0.0.1', 'fd00::/8']);
  test.each([
    ['without a proxy', '192.0.2.1', undefined, '192.0.2.1'],
    ['a header of an untrusted client is not read', '192.0.2.1', '198.51.100.7', '192.0.2.1'],
    ['of a trusted proxy', '10.1.2.3', '198.51.100.7', '198.51.100.7'],
    ['as a mapped address', '::ffff:10.1.2.3', '198.51.100.7', '198.51.100.7'],
    ['the nearest that is not trusted counts', '10.1.2.3', '203.0.113.9, 198.51.100.7, 10.9.9.9', '198.51.100.7'],
    ['several headers are one list', '127.0.0.1', ['203.0.113.9', '198.51.100.7'], '198.51.100.7'],
    ['IPv6', 'fd00::1', '2001:db8::7', '2001:db8::7'],
    ['a header that is no list of addresses', '10.1.2.3', 'unknown', '10.1.2.3'],
    ['a header that is empty', '10.1.2.3', '', '10.1.2.3'],
    ['only proxies', '10.1.2.3', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
  ])('%s', (_name, remote, forwarded, address) => {
    expect(find(requestFrom(remote, forwarded))).toBe(address);
  });

  test('is that of the connection if no proxy is trusted', () => {
    expect(clientAddressFinder([])(requestFrom('127.0.0.1', '198.51.100.7'))).toBe('127.0.0.1');
  });

  test('never throws, and is never text that a client chose behind an untrusted address', () => {
    fc.assert(
      fc.property(fc.string(), (header) => {
        expect(find(requestFrom('192.0.2.1', header))).toBe('192.0.2.1');
        expect(typeof find(requestFrom('10.0.0.1', header))).toBe('string');
      }),
    );
  });

  test.each(['x', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.0/', 'fd00::/129', ''])('refuses the proxy %j', (text) => {
    expect(() => clientAddressFinder([text])).toThrow('an IP address, or a network such as 10.0.0.0/8');
  });
});
