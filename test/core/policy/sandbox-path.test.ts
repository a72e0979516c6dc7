import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ACTIONS } from '../../../src/core/contract/policy/catalogue.js';
import { INVISIBLE_RANGES } from '../../../src/core/contract/invisible.js';
import {
  canonicalizePath,
  isExtensionAllowed,
  pathOptionsOf,
  checkSandboxPath,
  segmentCount,
  type SandboxPath,
  type SandboxPathOptions,
} from '../../../src/core/policy/sandbox-path.js';
import { testPolicy } from '../../fixtures/policy.js';

const FILE: SandboxPathOptions = {
  trailingSlash: false,
  dotdot: 'reject',
  path_bytes_max: 1_024,
  portable_names: false,
};
const DIRECTORY: SandboxPathOptions = { ...FILE, trailingSlash: true };
const DEFERRING: SandboxPathOptions = { ...FILE, dotdot: 'defer' };
const PORTABLE: SandboxPathOptions = { ...FILE, portable_names: true };

const invalid = (rule: string) => ({
  ok: false,
  fault: { code: 'INVALID_ARGS', cause: null, rule_id: `path.${rule}` },
});
const denied = (rule: string) => ({
  ok: false,
  fault: { code: 'POLICY_VIOLATION', cause: 'SANDBOX', rule_id: `sandbox.${rule}` },
});

/** A path of exactly `bytes` bytes, in segments that are short enough. */
const pathOfBytes = (bytes: number): string => `/sandbox/${'abcdefg/'.repeat(200)}`.slice(0, bytes - 1) + 'x';

// A path, and what is wrong with its spelling. Both checks must reject each of these, one as invalid, one as denied.
const REFUSED: readonly (readonly [string, string, string])[] = [
  ['S0-42', '', 'prefix'],
  ['S0-42', '/', 'prefix'],
  ['S0-42', '/sandbox', 'prefix'],
  ['S0-42', 'sandbox/a.txt', 'prefix'],
  ['S0-42', './sandbox/a.txt', 'prefix'],
  ['S0-42', '/sandbox_evil/x.txt', 'prefix'],
  ['S0-42', '/sandboxa.txt', 'prefix'],
  ['S0-42', '/Sandbox/a.txt', 'prefix'],
  ['S0-42', '/etc/passwd', 'prefix'],
  ['S0-42', ' /sandbox/a.txt', 'prefix'],
  ['S0-42', '//sandbox/a.txt', 'prefix'],
  ['S0-42', '/tmp/../sandbox/a.txt', 'prefix'],
  ['S0-42', '%2Fsandbox%2Fa.txt', 'prefix'],
  ['S0-42', 'file:///sandbox/a.txt', 'prefix'],
  ['S0-43', '/sandbox/a.txt\0.md', 'illegal_character'],
  ['S0-43', '/sandbox/a\n.txt', 'illegal_character'],
  ['S0-43', '/sandbox/a\r.txt', 'illegal_character'],
  ['S0-43', '/sandbox/\u001b[2J.txt', 'illegal_character'],
  ['S0-43', '/sandbox/a\u007f.txt', 'illegal_character'],
  ['S0-43', '/sandbox/a\u0080.txt', 'illegal_character'],
  ['S0-43', '/sandbox/a\u009b.txt', 'illegal_character'],
  ['S0-43', '/sandbox/..\\..\\x', 'illegal_character'],
  ['S0-43', '/sandbox/a\\b.txt', 'illegal_character'],
  ['S0-43', '/sandbox/\ud800.txt', 'illegal_character'],
  ['S0-43', '/sandbox/\udc00.txt', 'illegal_character'],
  ['S1-01', '/sandbox/cafe\u0301.txt', 'not_nfc'],
  ['S1-01', '/sandbox/\u212a.txt', 'not_nfc'],
  ['S1-01', '/sandbox//a.txt', 'empty_segment'],
  ['S1-01', '/sandbox/a//b.txt', 'empty_segment'],
  ['S1-01', '/sandbox/./a.txt', 'dot_segment'],
  ['S1-01', '/sandbox/a/.', 'dot_segment'],
  ['S0-44', '/sandbox/a/../b.txt', 'dotdot_segment'],
  ['S0-44', '/sandbox/a/..', 'dotdot_segment'],
  ['S1-01', '/sandbox/a.txt/', 'trailing_slash'],
  ['S1-01', '/sandbox//', 'trailing_slash'],
  ['S1-01', `/sandbox/${'a'.repeat(256)}`, 'segment_bytes_max'],
  ['S1-01', `/sandbox/${'é'.repeat(128)}`, 'segment_bytes_max'],
  ['S1-01', pathOfBytes(1_025), 'path_bytes_max'],
  ['S1-01', `/sandbox/${'é'.repeat(600)}`, 'path_bytes_max'],
];

const ACCEPTED: readonly string[] = [
  '/sandbox/',
  '/sandbox/a.txt',
  '/sandbox/.txt',
  '/sandbox/.hidden',
  '/sandbox/...',
  '/sandbox/a..b.txt',
  '/sandbox/..a',
  '/sandbox/a..',
  '/sandbox/a/b/c.md',
  '/sandbox/sandbox/sandbox',
  '/sandbox/%2e%2e/%00.txt',
  '/sandbox/with space.txt',
  '/sandbox/caf\u00e9.txt',
  '/sandbox/日本語.txt',
  '/sandbox/😀.md',
  '/sandbox/C:',
  '/sandbox/CON.txt',
  `/sandbox/${'a'.repeat(255)}`,
  `/sandbox/${'é'.repeat(127)}a`,
  pathOfBytes(1_024),
];

describe('sandboxPath', () => {
  test.each(REFUSED)('%s S0-45: %j is invalid (%s)', (_id, raw, rule) => {
    expect(checkSandboxPath(raw, FILE)).toEqual(invalid(rule));
  });

  test.each(ACCEPTED)('S0-42: %s is a path and keeps its spelling', (raw) => {
    expect(checkSandboxPath(raw, FILE)).toEqual({ ok: true, value: raw });
  });

  test('S0-44: a `..` segment is left to AUTHORIZE if policy defers it; an empty or `.` segment is not', () => {
    for (const raw of ['/sandbox/a/../b.txt', '/sandbox/../etc/passwd', '/sandbox/..']) {
      expect(checkSandboxPath(raw, FILE)).toEqual(invalid('dotdot_segment'));
      expect(checkSandboxPath(raw, DEFERRING)).toEqual({ ok: true, value: raw });
    }
    expect(checkSandboxPath('/sandbox/./a', DEFERRING)).toEqual(invalid('dot_segment'));
    expect(checkSandboxPath('/sandbox/a//b', DEFERRING)).toEqual(invalid('empty_segment'));
  });

  test('a path to a directory may end with one slash', () => {
    expect(checkSandboxPath('/sandbox/docs/', DIRECTORY)).toEqual({ ok: true, value: '/sandbox/docs/' });
    for (const raw of ['/sandbox/docs//', '/sandbox//'])
      expect(checkSandboxPath(raw, DIRECTORY)).toEqual(invalid('empty_segment'));
  });

  test('the longest path is counted in bytes, as policy sets it', () => {
    const short = { ...FILE, path_bytes_max: 12 };
    expect(checkSandboxPath('/sandbox/é.', short)).toMatchObject({ ok: true });
    expect(checkSandboxPath('/sandbox/éé', short)).toEqual(invalid('path_bytes_max'));
  });
});

describe('portable names', () => {
  test.each([
    ...['CON', 'con.txt', 'Aux.md', 'NUL', 'nul.tar.gz', 'PRN.txt', 'COM1', 'com9.txt', 'COM\u00b9.txt', 'LPT\u00b3'],
    ...['CONIN$', 'conout$.txt', 'CON .txt', 'a.txt::$DATA', 'C:', 'a.txt.', 'a.txt ', 'PROGRA~1', 'DOCUME~12.TXT'],
    ...['a?.txt', 'a*.txt', 'a<b.txt', 'a>b.txt', 'a|b.txt', 'a"b.txt'],
  ])('%j is rejected if policy requires them, and otherwise accepted', (name) => {
    for (const raw of [`/sandbox/${name}`, `/sandbox/${name}/a.txt`, `/sandbox/a/${name}`]) {
      expect(checkSandboxPath(raw, PORTABLE)).toEqual(invalid('not_portable'));
      expect(canonicalizePath(raw, PORTABLE)).toEqual(denied('not_portable'));
      expect(checkSandboxPath(raw, FILE)).toMatchObject({ ok: true });
    }
  });

  test.each([
    'CONSOLE.txt',
    'icon.txt',
    'com.txt',
    'COM10.txt',
    'auxiliary.md',
    'a~b.txt',
    'programs~1',
    'a~1b',
    'a~1.text',
    'nu.l',
    '.con',
    'a b.txt',
  ])('%j is portable', (name) => {
    expect(checkSandboxPath(`/sandbox/${name}`, PORTABLE)).toMatchObject({ ok: true });
  });
});

describe('canonicalPath', () => {
  // A path that resolves to a place outside is rejected for that, before any mistake of spelling.
  const OUTSIDE = [
    '',
    '/',
    'sandbox/a.txt',
    './sandbox/a.txt',
    '/sandbox_evil/x.txt',
    '/sandboxa.txt',
    '/Sandbox/a.txt',
  ];
  const outside = new Set([
    ...OUTSIDE,
    '/etc/passwd',
    ' /sandbox/a.txt',
    '%2Fsandbox%2Fa.txt',
    'file:///sandbox/a.txt',
  ]);

  test.each(REFUSED)('%s S0-47 S0-49 S0-50 S0-51: on its own, it denies %j', (_id, raw, rule) => {
    expect(canonicalizePath(raw, FILE)).toEqual(denied(outside.has(raw) ? 'outside' : rule));
  });

  test.each(ACCEPTED)('S0-47: %s is already canonical', (raw) => {
    expect(canonicalizePath(raw, FILE)).toEqual({ ok: true, value: raw });
  });

  test.each([
    ['/sandbox/a/../b.txt', '/sandbox/b.txt'],
    ['/sandbox/a/b/../../c.txt', '/sandbox/c.txt'],
    ['/sandbox/a/..', '/sandbox/'],
    ['/sandbox/../sandbox/b.txt', '/sandbox/b.txt'],
    ['/sandbox/a/b/..', '/sandbox/a'],
  ])('S0-47: if policy defers `..`, %s is resolved to %s', (raw, canonical) => {
    expect(canonicalizePath(raw, DEFERRING)).toEqual({ ok: true, value: canonical });
  });

  test.each([
    '/sandbox/..',
    '/sandbox/../etc/passwd',
    '/sandbox/a/../../etc/passwd',
    '/sandbox/../../../../etc/passwd',
    '/sandbox/../sandbox_evil/x.txt',
    '/sandbox/../sandbox/../x.txt',
    '/sandbox/../Sandbox/x.txt',
  ])('S0-47 S0-49 S0-51: %s leads outside, whatever policy sets for `..`', (raw) => {
    for (const options of [FILE, DEFERRING]) expect(canonicalizePath(raw, options)).toEqual(denied('outside'));
  });

  test('a trailing slash stays, so that an executor can require a directory', () => {
    expect(canonicalizePath('/sandbox/docs/', DIRECTORY)).toEqual({ ok: true, value: '/sandbox/docs/' });
    expect(canonicalizePath('/sandbox/a/../', { ...DIRECTORY, dotdot: 'defer' })).toEqual({
      ok: true,
      value: '/sandbox/',
    });
  });

  test.each([
    '/sandbox/.turnpike-1',
    '/sandbox/.turnpike-/a.txt',
    '/sandbox/a/.turnpike-x.txt',
    '/sandbox/.TurnPike-x',
  ])('S0-49: the name %s is reserved for the executor', (raw) => {
    expect(checkSandboxPath(raw, FILE)).toMatchObject({ ok: true });
    expect(canonicalizePath(raw, FILE)).toEqual(denied('reserved_name'));
  });

  test('names that only look reserved are ordinary', () => {
    for (const raw of ['/sandbox/.turnpike', '/sandbox/turnpike-1', '/sandbox/a.turnpike-1']) {
      expect(canonicalizePath(raw, FILE)).toMatchObject({ ok: true });
    }
    expect(canonicalizePath('/sandbox/.turnpike-1/../a.txt', DEFERRING)).toMatchObject({ ok: true });
  });

  test('S0-47 S0-49: every allowed path is inside, has no dot segment and is canonical', () => {
    const segment = fc.constantFrom('..', '.', '', 'a', 'b.txt', '...', 'sandbox', '.turnpike-1', '\\', 'é');
    const path = fc.array(segment, { maxLength: 8 }).map((segments) => `/sandbox/${segments.join('/')}`);
    fc.assert(
      fc.property(path, fc.boolean(), (raw, trailingSlash) => {
        const options = { ...DEFERRING, trailingSlash };
        const checked = canonicalizePath(raw, options);
        if (!checked.ok) return;
        expect(checked.value).toMatch(/^\/sandbox\/(?!.*(?:^|\/)\.{0,2}\/)(?!.*\/\.{1,2}$)/);
        expect(canonicalizePath(checked.value, { ...options, dotdot: 'reject', trailingSlash: true })).toEqual(checked);
        // AUTHORIZE is nowhere laxer than VALIDATE_ARGS.
        expect(checkSandboxPath(raw, options)).toMatchObject({ ok: true });
      }),
      { numRuns: 3_000 },
    );
  });
});

describe('properties of a canonical path', () => {
  const canonical = (raw: string): SandboxPath => {
    const checked = canonicalizePath(raw, DIRECTORY);
    if (!checked.ok) throw new Error(raw);
    return checked.value;
  };
  const TEXT = ['.txt', '.md'];

  test.each([
    ['/sandbox/a.txt', true],
    ['/sandbox/a.md', true],
    ['/sandbox/.txt', true],
    ['/sandbox/a.sh.txt', true],
    ['/sandbox/a.TXT', false],
    ['/sandbox/a.txt.sh', false],
    ['/sandbox/a.txt/', false],
    ['/sandbox/a.txt/b', false],
    ['/sandbox/atxt', false],
    ['/sandbox/a.txt ', false],
    ['/sandbox/', false],
  ])('S0-48 S1-13 S1-16 S1-18: does %s end with .txt or .md? %s', (raw, allowed) => {
    expect(isExtensionAllowed(canonical(raw), TEXT)).toBe(allowed);
  });

  test.each([
    ['/sandbox/Makefile', true],
    ['/sandbox/src/Makefile', true],
    ['/sandbox/GNUMakefile', false],
    ['/sandbox/Makefile/a', false],
    ['/sandbox/makefile', false],
    ['/sandbox/Makefile.am', false],
  ])('S0-48: is %s a file of the listed name? %s', (raw, allowed) => {
    expect(isExtensionAllowed(canonical(raw), ['.txt', 'Makefile'])).toBe(allowed);
  });

  test('an empty list allows no extension', () => {
    expect(isExtensionAllowed(canonical('/sandbox/a.txt'), [])).toBe(false);
  });

  test('C88: no path has an invisible character', () => {
    for (const [first, last] of INVISIBLE_RANGES) {
      for (const point of new Set([first, last])) {
        const raw = `/sandbox/a${String.fromCodePoint(point)}.txt`;
        expect(checkSandboxPath(raw, FILE)).toEqual(invalid('invisible_character'));
        expect(canonicalizePath(raw, FILE)).toEqual(denied('invisible_character'));
      }
    }
    expect(checkSandboxPath('/sandbox/\u6797/Ren\u00e9e\ud83d\ude00.txt', FILE)).toMatchObject({ ok: true });
  });

  test('counts the names below the root', () => {
    expect(
      ['/sandbox/', '/sandbox/a', '/sandbox/a/', '/sandbox/a/b'].map((raw) => segmentCount(canonical(raw))),
    ).toEqual([0, 1, 1, 2]);
  });

  test('takes its options from the action and from policy', () => {
    const policy = testPolicy({
      knobs: { dotdot: 'defer' },
      limits: { path_bytes_max: 99 },
      sandbox: { portable_names: true },
    });
    expect(pathOptionsOf(ACTIONS.LIST_FILES, policy)).toEqual({
      trailingSlash: true,
      dotdot: 'defer',
      path_bytes_max: 99,
      portable_names: true,
    });
    expect(pathOptionsOf(ACTIONS.READ_FILE, policy).trailingSlash).toBe(false);
  });
});
