// The threat table (docs: hostile cases), row by row, through the real phases. What only an executor can see is a fact
// here; the executor's own tests use a real disk.

import { describe, expect, test } from '@jest/globals';
import type { RefusedKind } from '../../../src/core/contract/run/effect.js';
import type { FaultCode } from '../../../src/core/contract/fault.js';
import type { Policy } from '../../../src/core/policy/policy.js';
import { testPolicy } from '../../fixtures/policy.js';
import { bytesOf, factsOf, fileFact, ID, judge, proposal } from './judge.js';

const read = (path: string) => proposal({ args: { path } });
const argsText = (args: string) =>
  `{"schema_version":"1.0.0","id":"${ID}","reasoning":"x","action":"READ_FILE","args":${args}}`;
const raw = (fields: string) => argsText(`{"path":"/sandbox/a.txt"}${fields}`);
const nested = (depth: number) => argsText('{"path":'.repeat(depth) + '1' + '}'.repeat(depth));
const utf16 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'utf16le'));

type Row = readonly [what: string, payload: string | Uint8Array, code: FaultCode, policy?: Policy];
const portable = testPolicy({ sandbox: { portable_names: true } });
const roomy = testPolicy({ limits: { payload_bytes_max: 16_777_216 } });

const PATHS: readonly Row[] = [
  ['a sibling with the same prefix', read('/sandbox_evil/x.txt'), 'INVALID_ARGS'],
  ['an absolute path', read('/etc/passwd'), 'INVALID_ARGS'],
  ['a traversal', read('/sandbox/../../etc/passwd'), 'INVALID_ARGS'],
  [
    'a traversal, if policy defers it',
    read('/sandbox/../etc/passwd'),
    'POLICY_VIOLATION',
    testPolicy({ knobs: { dotdot: 'defer' } }),
  ],
  ['a decomposed name', read('/sandbox/cafe\u0301.txt'), 'INVALID_ARGS'],
  ['backslashes', read('/sandbox/..\\..\\x'), 'INVALID_ARGS'],
  ['a device of Windows', read('/sandbox/CON.txt'), 'INVALID_ARGS', portable],
  ['a device of Windows in superscript', read('/sandbox/COM\u00b9.txt'), 'INVALID_ARGS', portable],
  ['an alternate data stream', read('/sandbox/a.txt::$DATA'), 'INVALID_ARGS', portable],
  ['a point at the end', read('/sandbox/a.txt.'), 'INVALID_ARGS', portable],
  ['a space at the end', read('/sandbox/a.txt '), 'INVALID_ARGS', portable],
  ['a short name', read('/sandbox/PROGRA~1'), 'INVALID_ARGS', portable],
  ['NUL', read('/sandbox/a.txt\0.md'), 'INVALID_ARGS'],
  ['a line end', read('/sandbox/a\n.txt'), 'INVALID_ARGS'],
  ['DEL', read('/sandbox/a\u007f.txt'), 'INVALID_ARGS'],
  ['a half-written file of the executor', read('/sandbox/.turnpike-0123'), 'POLICY_VIOLATION'],
];

const JSON_TRICKS: readonly Row[] = [
  ['a key twice', raw(',"action":"DELETE_FILE"'), 'INVALID_JSON'],
  ['a key twice, once escaped', raw(String.raw`,"\u0061ction":"DELETE_FILE"`), 'INVALID_JSON'],
  ['__proto__ in args', argsText('{"path":"/sandbox/a.txt","__proto__":{"admin":true}}'), 'INVALID_JSON'],
  ['__proto__ at the top', raw(',"__proto__":{"action":"DELETE_FILE"}'), 'INVALID_JSON'],
  ['__proto__, escaped', argsText(String.raw`{"path":"/sandbox/a.txt","\u005f_proto__":1}`), 'INVALID_JSON'],
  ['constructor at the top', raw(',"constructor":{"prototype":{}}'), 'SCHEMA_VIOLATION'],
  ['constructor in args', argsText('{"path":"/sandbox/a.txt","constructor":{}}'), 'INVALID_ARGS'],
  ['args inherited from nowhere', argsText('{"toString":"/sandbox/a.txt"}'), 'INVALID_ARGS'],
  ['33 levels', nested(32), 'INVALID_JSON'],
  ['5,000 levels', nested(5_000), 'INVALID_JSON'],
  ['30,000 brackets', '['.repeat(30_000), 'INVALID_JSON'],
  ['1,000,000 brackets', '['.repeat(1_000_000), 'PAYLOAD_TOO_LARGE'],
  ['1,000,000 brackets, within the size limit', '['.repeat(1_000_000), 'INVALID_JSON', roomy],
  ['a lone surrogate in a path', argsText(String.raw`{"path":"/sandbox/\ud800.txt"}`), 'INVALID_JSON'],
  ['a byte order mark', `\ufeff${proposal()}`, 'INVALID_JSON'],
  ['nothing but a byte order mark', '\ufeff', 'INVALID_JSON'],
  ['UTF-16 with its mark', utf16(`\ufeff${proposal()}`), 'INVALID_ENCODING'],
  ['UTF-16 without it', utf16(proposal()), 'INVALID_JSON'],
  ['an overlong slash', Uint8Array.of(0x22, 0xc0, 0xaf, 0x22), 'INVALID_ENCODING'],
  ['NaN', argsText('{"path":NaN}'), 'INVALID_JSON'],
  ['Infinity by overflow', argsText('{"path":1e999}'), 'INVALID_JSON'],
  ['a number that no double can represent', argsText('{"path":9007199254740993}'), 'INVALID_JSON'],
  ['a comment', raw('/* ,"x":1 */'), 'INVALID_JSON'],
  ['a second proposal on the next line', `${proposal()}\n${proposal()}`, 'INVALID_JSON'],
];

const FIELD_TRICKS: readonly Row[] = [
  ['a version with a line end', proposal({ schema_version: '1.0.0\n' }), 'SCHEMA_VIOLATION'],
  ['a version in Arabic digits', proposal({ schema_version: '1.٠.٠' }), 'SCHEMA_VIOLATION'],
  ['a ligature that folds to FINISH', proposal({ action: 'ﬁnish', args: { response: '' } }), 'ACTION_NOT_ALLOWED'],
  ['a dotless i that folds to THINK', proposal({ action: 'thınk', args: {} }), 'ACTION_NOT_ALLOWED'],
  ['a long s that folds to LIST_FILES', proposal({ action: 'liſt_files' }), 'ACTION_NOT_ALLOWED'],
  ['a hidden control field', proposal({ run_as: 'SYSTEM' }), 'SCHEMA_VIOLATION'],
  ['a hidden control argument', proposal({ args: { path: '/sandbox/a.txt', follow_links: true } }), 'INVALID_ARGS'],
  ['an id that carries markup', proposal({ id: '<img src=x onerror=alert(1)>' }), 'SCHEMA_VIOLATION'],
];

describe('hostile payloads', () => {
  const rows = [...PATHS, ...JSON_TRICKS, ...FIELD_TRICKS].map(
    ([what, payload, code, policy]) =>
      ({ what, payload, code, world: policy === undefined ? {} : { policy } }) as const,
  );
  test.each(rows)('S2-04 S2-08 S2-15 S2-16: $what is rejected', ({ payload, code, world }) => {
    const judged = judge(payload, world);
    expect(judged.fault).toMatchObject({ code });
    expect(judged.args).toBeNull();
  });

  const KINDS: readonly RefusedKind[] = [
    'symlink',
    'hard_link',
    'fifo',
    'socket',
    'device',
    'other_file_system',
    'name_twin',
  ];
  test.each(KINDS)('S0-51 S2-16 S2-24: a %s is denied', (kind) => {
    const judged = judge(read('/sandbox/link.txt'), { facts: factsOf({ status: 'refused', kind }) });
    expect(judged.fault).toMatchObject({ code: 'POLICY_VIOLATION', cause: 'SANDBOX', rule_id: `sandbox.${kind}` });
    expect(judged.response).toContain('"message":"Access outside /sandbox/ is not allowed"');
  });

  test('a write beyond the quota is denied before anything is written', () => {
    const policy = testPolicy({ sandbox: { bytes_max: 4 } });
    const payload = proposal({ action: 'WRITE_FILE', args: { path: '/sandbox/a.txt', content: 'hello' } });
    const judged = judge(payload, { policy, facts: factsOf({ status: 'absent' }) });
    expect(judged.fault).toMatchObject({ code: 'POLICY_VIOLATION', cause: 'QUOTA' });
  });

  test.each(['a\r\nb', '\u001b[2J', '\u009b2J', '\u202e', '\u2028', '<img onerror=x>', '=HYPERLINK("x")', '{"seq":1}'])(
    'S0-67: reasoning of %j is only text',
    (reasoning) => {
      const judged = judge(proposal({ reasoning }), { facts: factsOf(fileFact()) });
      expect(judged.fault).toBeNull();
      expect(judged.response).toBe(judge(proposal()).response);
      expect(judged.identity.reasoning).toMatchObject({ chars: reasoning.length });
    },
  );

  test('deep nesting is rejected in a few milliseconds of processor time', () => {
    const payload = bytesOf(nested(5_000));
    judge(payload);
    const started = process.cpuUsage();
    for (let round = 0; round < 20; round++) judge(payload);
    expect(process.cpuUsage(started).user / 20 / 1_000).toBeLessThan(5);
  });
});
