// identities.yaml of a contract folder, as `turnpike policy check` and `turnpike policy pin` treat it.

import { beforeEach, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { initialised, jsonLines, linesOf, put, turnpike } from '../../fake-io.js';

const FILE = 'contract/policy/identities.yaml';
const VALID = `version: v1
contract_version: v1
last_updated: 2026-11-25
issuers:
  - issuer: https://login.example.com
    mappings:
      - id: counsel
        claims: { groups: [counsel] }
        actor: { claim: sub }
        person: { claim: employee_number }
        role: ATTORNEY_ADMIN
        case: any
        rights: [observe, approve]
`;
const LINES = VALID.split('\n');
const lineOf = (text: string): number => LINES.findIndex((line) => line.includes(text)) + 1;

let folder: string;
beforeEach(async () => {
  folder = await initialised();
});

const check = (...more: string[]) => turnpike(folder, ['policy', 'check', ...more]);
const pin = (...more: string[]) => turnpike(folder, ['policy', 'pin', ...more]);
const pins = (): string => readFileSync(join(folder, 'contract/pins.json'), 'utf8');

describe('C98 a valid file', () => {
  beforeEach(() => {
    put(folder, FILE, VALID);
  });

  test('C98 is checked, and named while it has no pin', async () => {
    const { code, stdout, stderr } = await check();
    expect(code).toBe(0);
    // The shipped rules for approvals also take votes of the token book.
    const warning = /^contract\/policy\/identities\.yaml:4 warning: identity\.unverified_votes: /;
    expect(linesOf(stdout)).toEqual([expect.stringMatching(warning), expect.stringMatching(warning)]);
    expect(linesOf(stderr)).toEqual([expect.stringMatching(/^contract\/policy\/identities\.yaml is not pinned \(/)]);
  });

  test('C98 is pinned with the other files, and then has no warning', async () => {
    const { code, stdout } = await pin();
    expect(code).toBe(0);
    expect(linesOf(stdout)).toContainEqual(expect.stringMatching(/^[0-9a-f]{40} {2}policy\/identities\.yaml$/));
    expect(JSON.parse(pins())).toMatchObject({
      files: expect.arrayContaining([expect.objectContaining({ path: 'policy/identities.yaml' })]),
    });
    expect(await check()).toMatchObject({ code: 0, stderr: '' });
  });

  test('C98 is named again after an edit', async () => {
    await pin();
    put(folder, FILE, VALID.replace('counsel]', 'lawyers]'));
    const { code, stderr } = await check();
    expect(code).toBe(0);
    expect(stderr).toMatch(/^contract\/policy\/identities\.yaml is not pinned \(/);
  });
});

describe('C98 a faulty file', () => {
  /** The edit of a line, the line that is named, and the message. All rules: test/home/policy/check-identities. */
  const FAULTS: readonly (readonly [fault: string, from: string, to: string, line: string, said: string])[] = [
    [
      'a role that does not exist',
      'role: ATTORNEY_ADMIN',
      'role: ATTORNEY',
      'role:',
      'identity.unknown_role: mapping "counsel" gives the role "ATTORNEY", which is not in the roles',
    ],
    ['text that is not YAML', '  - issuer: https://login.example.com', '  - issuer: [', '', 'yaml'],
  ];

  test.each(FAULTS)('C98 %s: file, line and message, and no pin', async (_fault, from, to, at, said) => {
    const text = VALID.replace(from, to);
    expect(text).not.toBe(VALID);
    put(folder, FILE, text);
    const line = at === '' ? null : text.split('\n').findIndex((one) => one.includes(at)) + 1;
    const before = pins();
    const { code, stdout } = await check();
    expect(code).toBe(1);
    const [finding = ''] = linesOf(stdout);
    expect(finding).toMatch(line === null ? /^contract\/policy\/identities\.yaml:\d+/ : `${FILE}:${line}`);
    expect(finding).toContain(said);
    const refused = await pin();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`POLICY_INVALID: the policy has 1 finding: ${finding}`);
    expect(pins()).toBe(before);
  });

  test('C98 --json gives file, line and rule as fields', async () => {
    put(folder, FILE, VALID.replace('ATTORNEY_ADMIN', 'ATTORNEY'));
    const { stdout } = await check('--json');
    expect(jsonLines(stdout)[0]).toEqual({
      file: FILE,
      line: lineOf('role: ATTORNEY_ADMIN'),
      rule: 'identity.unknown_role',
      message: expect.stringContaining('"ATTORNEY"'),
    });
  });

  test('C98 an actor whom users can rename is a lint error, which a pin needs accepted with a reason', async () => {
    put(folder, FILE, VALID.replace('actor: { claim: sub }', 'actor: { claim: email }'));
    const { code, stdout } = await check();
    expect(code).toBe(1);
    const rule = 'identity.changeable_claim';
    expect(stdout).toContain(`${FILE}:${lineOf('actor:')} ${rule}: mapping "counsel" takes the actor from "email"`);
    expect(await pin()).toMatchObject({ code: 1, stderr: expect.stringContaining('not pinned') });
    expect(await pin('--accept', rule, '--reason', 'The file is read-only.')).toMatchObject({ code: 0 });
    expect(await check()).toMatchObject({ code: 0, stdout: expect.stringContaining('(accepted: ') });
  });
});
