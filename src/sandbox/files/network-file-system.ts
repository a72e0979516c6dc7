// Whether a folder is on a file system that other machines change. Settlement compares inodes and times, which such a
// file system may report late or differently on each machine.

import { statfsSync } from 'node:fs';
import { SandboxError } from '../../core/errors.js';

/** Types of statfs(2). */
const NETWORK_TYPES: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x00c36400, 'Ceph'],
  [0x01021997, '9P'],
  [0x47504653, 'GPFS'],
  [0x0bd00bd0, 'Lustre'],
  [0x5346414f, 'AFS'],
  [0x01161970, 'GFS2'],
  [0x7461636f, 'OCFS2'],
  [0x65735546, 'FUSE'],
]);

/** Reads the type of the file system of a folder. */
export type ReadFileSystemType = (folder: string) => number;
const readType: ReadFileSystemType = (folder) => statfsSync(folder).type;

/** @throws SandboxError SANDBOX_UNUSABLE if the folder is on a network file system */
export function refuseNetworkFileSystem(folder: string, read = readType): void {
  const name = NETWORK_TYPES.get(read(folder) >>> 0);
  if (name === undefined) return;
  const message =
    `${folder} is on a network file system (${name}), and settlement after a crash compares inodes and times: ` +
    'use a local file system for the volume, or create the home with --unsafe-shared';
  throw new SandboxError({ code: 'SANDBOX_UNUSABLE', message });
}
