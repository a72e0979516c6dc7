// Whether a restored ledger may execute effects again is decided by its policy.

import { expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { finish, initialised, turnpike, write, type Said } from '../../fake-io.js';

/** A home that was restored from a backup, under a policy with these conditions. */
async function restored(conditions: string): Promise<(...argv: string[]) => Promise<Said>> {
  const folder = await initialised();
  const stdin = [write('/sandbox/a.txt', 'a'), finish()].join('\n');
  expect(await turnpike(folder, ['run', '-'], { stdin })).toMatchObject({ code: 0 });
  expect(await turnpike(folder, ['backup', 'backup', '--with-keys'])).toMatchObject({ code: 0 });
  writeFileSync(join(folder, 'contract/policy/conditions.cedar'), conditions);
  expect(await turnpike(folder, ['policy', 'pin'])).toMatchObject({ code: 0 });
  const look = (...argv: string[]): Promise<Said> => turnpike(folder, [...argv, '--home', 'restored']);
  expect(await look('restore', 'backup', '--actor', 'olga', '--no-erasures')).toMatchObject({ code: 0 });
  return look;
}

const acknowledge = ['restore', 'acknowledge', '--actor', 'olga', '--yes'] as const;

test('C101: a condition keeps a restored ledger suspended', async () => {
  const look = await restored('@id("frozen")\nforbid (principal, action == Action::"restore", resource);\n');
  expect(await look(...acknowledge)).toMatchObject({ code: 1, stderr: expect.stringContaining('frozen') });
  expect(await look('doctor')).toMatchObject({ code: 1, stdout: expect.stringContaining('suspended') });
  expect(await look('replay')).toMatchObject({ code: 0 });
});

test('C101: a second person lets a restored ledger execute effects again, while it is suspended', async () => {
  const asks = '@id("two")\n@approvals("1")\n@approver_role("ATTORNEY_ADMIN")\n';
  const look = await restored(`${asks}forbid (principal, action == Action::"restore", resource);\n`);
  const pending = await look(...acknowledge);
  expect(pending).toMatchObject({ code: 1, stderr: expect.stringContaining('APPROVAL_PENDING') });
  const [, run = '', digest = ''] = /turnpike approve (\S+) ([0-9a-f]{64})/.exec(pending.stderr) ?? [];
  const vote = (actor: string) => look('approve', run, digest, '--actor', actor, '--role', 'ATTORNEY_ADMIN');
  expect(await vote('olga')).toMatchObject({ code: 1 });
  expect(await look(...acknowledge, '--approved', run)).toMatchObject({ code: 1 });
  // It does not wait for the run, which the command that asked for it executes.
  expect(await vote('second person')).toMatchObject({ code: 0, stderr: '' });
  expect(await look(...acknowledge, '--approved', run)).toMatchObject({ code: 0 });
  expect((await look('doctor')).stdout).not.toContain('suspended');
  expect(await look('replay')).toMatchObject({ code: 0 });
});
