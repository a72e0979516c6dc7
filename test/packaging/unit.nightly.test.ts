// The unit for systemd: checked by systemd's own tools, and started by a systemd that is the first process of a
// container, whose files are those of this machine, read-only.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installedPackage } from '../fixtures/installed-package.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { ROOT, textOf } from '../sources.js';
import { reasonToSkip, runProgram } from './programs.js';

const MS_MAX = 240_000;
const UNIT = 'packaging/turnpike.service';
/** Of 100: what systemd calls 1.5, where 10 is a service without any restriction. */
const EXPOSURE_MAX = 15;

/** A container of the files of this machine, which ends with its first process. */
const CONTAINER = [
  ...['--pid', '--fork', '--kill-child', '--mount', '--mount-proc', 'systemd-nspawn'],
  ...['--directory=/', '--volatile=yes', '--private-network', '--register=no', '--keep-unit', '--console=pipe'],
];
const TRIAL = ['unshare', ...CONTAINER, `--machine=trial-${process.pid}`, '--as-pid2', '/usr/bin/true'];
const suite = reasonToSkip(['systemd-analyze', 'systemd-nspawn'], TRIAL) === null ? describe : describe.skip;

const PROBE_SERVICE = `[Unit]
After=turnpike.service
[Service]
Type=oneshot
ExecStart=${process.execPath} /report/probe.mjs
`;

const PROBE_TARGET = `[Unit]
Requires=basic.target
Wants=turnpike.service probe.service
After=basic.target
`;

suite('the unit', () => {
  const folder = diskFolder('unit');
  const unit = join(folder, 'turnpike.service');

  beforeAll(() => {
    // Node may be elsewhere on this machine.
    writeFileSync(unit, textOf(UNIT).replace('/usr/bin/node', process.execPath));
  });

  test('has no mistake that systemd finds', () => {
    expect(runProgram('systemd-analyze', ['verify', '--man=no', unit])).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  test('exposes at most 1.5 of 10', () => {
    const analyze = (most: number): number | null =>
      runProgram('systemd-analyze', ['security', '--offline=true', '--no-pager', `--threshold=${most}`, unit]).status;
    expect(analyze(EXPOSURE_MAX)).toBe(0);
    expect(analyze(5)).not.toBe(0);
  });

  test(
    'starts the service, confines it, restarts it after a crash, and stops it with exit code 0',
    async () => {
      const report = await bootWith(unit, folder);
      expect(report).toEqual({
        withoutHome: { ExecMainStatus: '2', NRestarts: '0', Result: 'exit-code' },
        outcome: 'SUCCESS',
        process: {
          isRoot: false,
          capabilities: '0000000000000000',
          noNewPrivileges: '1',
          seccomp: '2',
          writable: expect.arrayContaining(['/var/lib/turnpike', '/tmp']),
        },
        modes: ['.turnpike', 'contract'],
        stopped: { ExecMainStatus: '0', ExecMainCode: '1', Result: 'success', ActiveState: 'inactive' },
        verified: 'ok',
      });
      const { writable } = (report as { readonly process: { readonly writable: readonly string[] } }).process;
      expect(
        writable.filter((path) => !/^\/(?:dev|proc|run|tmp|var\/tmp|var\/lib\/turnpike)(?:\/|$)/.test(path)),
      ).toEqual([]);
    },
    MS_MAX,
  );
});

/** Boots a container with the unit. @returns what probe.mjs has reported */
async function bootWith(unit: string, folder: string): Promise<unknown> {
  const report = join(folder, 'report');
  mkdirSync(report);
  chmodSync(report, 0o755);
  copyFileSync(join(ROOT, 'test/packaging/probe.mjs'), join(report, 'probe.mjs'));
  const files = {
    '/etc/systemd/system/turnpike.service': readFileSync(unit, 'utf8'),
    '/etc/systemd/system/probe.service': PROBE_SERVICE,
    '/etc/systemd/system/probe.target': PROBE_TARGET,
    // Masked: there is no network to wait for.
    '/etc/systemd/system/systemd-networkd-wait-online.service': '',
    '/etc/sysusers.d/turnpike.conf': 'u turnpike - "Turnpike" /var/lib/turnpike\n',
  };
  const binds = Object.entries(files).map(([path, text], index) => {
    const file = join(folder, `file-${index}`);
    writeFileSync(file, text);
    return `--bind-ro=${file}:${path}`;
  });
  const { stdout, stderr } = runProgram('unshare', [
    ...CONTAINER,
    '--boot',
    `--machine=turnpike-${process.pid}`,
    `--bind-ro=${await installedPackage()}:/opt/turnpike`,
    `--bind=${report}:/report`,
    ...binds,
    ...['systemd.firstboot=no', 'systemd.unit=probe.target'],
  ]);
  try {
    return JSON.parse(readFileSync(join(report, 'report.json'), 'utf8'));
  } catch {
    throw new Error(`the container has reported nothing:\n${stdout}${stderr}`);
  }
}
