import { expect, test } from '@jest/globals';
import { refuseNetworkFileSystem } from '../../../src/sandbox/files/network-file-system.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { mkdirSync } from 'node:fs';

test.each([
  ['NFS', 0x6969],
  ['CIFS', 0xff534d42],
  // The same number as the system may report it, with a sign.
  ['CIFS', 0xff534d42 | 0],
  ['Ceph', 0x00c36400],
  ['9P', 0x01021997],
  ['FUSE', 0x65735546],
])('refuses a volume on %s', (name, type) => {
  expect(() => refuseNetworkFileSystem('/mnt/cases', () => type)).toThrow(
    expect.objectContaining({ code: 'SANDBOX_UNUSABLE', message: expect.stringContaining(`(${name})`) }),
  );
});

test('accepts the local file systems of this machine', () => {
  const folder = tempFolder('local');
  mkdirSync(folder, { recursive: true });
  refuseNetworkFileSystem(folder);
  refuseNetworkFileSystem('/dev/shm');
  for (const type of [0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630])
    refuseNetworkFileSystem('/mnt/cases', () => type);
});
