import { describe, expect, test } from '@jest/globals';
import { ACTIONS, type ActionName } from '../../../src/core/contract/policy/catalogue.js';
import { FAULTS } from '../../../src/core/contract/fault.js';
import type { PathFact, RefusedKind, SandboxFacts } from '../../../src/core/contract/run/effect.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { authorizePaths, gatherRequestFor, PATH_CHECKS } from '../../../src/core/step/authorization.js';
import { policyWithExtensions, testPolicy } from '../../fixtures/policy.js';
import { factsOf, fileFact } from './judge.js';

const policy = testPolicy();
const PATHS: Readonly<Record<ActionName, JsonObject>> = {
  THINK: {},
  FINISH: { response: 'done' },
  READ_FILE: { path: '/sandbox/a.txt' },
  LIST_FILES: { path: '/sandbox/docs/' },
  WRITE_FILE: { path: '/sandbox/a.txt', content: 'hello' },
  CREATE_DIRECTORY: { path: '/sandbox/docs' },
  DELETE_FILE: { path: '/sandbox/a.txt' },
  RENAME_FILE: { source: '/sandbox/a.txt', destination: '/sandbox/b.md' },
};
const NAMES = Object.keys(PATHS) as ActionName[];
const withPath = NAMES.filter((name) => ACTIONS[name].paths.length > 0);

const filesFor = (name: ActionName): SandboxFacts => factsOf(...ACTIONS[name].paths.map(() => fileFact()));
const authorize = (
  name: ActionName,
  args: JsonObject = PATHS[name],
  facts: SandboxFacts | null = filesFor(name),
  under = policy,
) => authorizePaths({ definition: ACTIONS[name], args, facts, policy: under });

const denied = (rule_id: string, cause: string) => ({ ok: false, fault: { code: 'POLICY_VIOLATION', cause, rule_id } });

describe('the checks of path arguments', () => {
  test('have these claims and rules, in this order', () => {
    expect(PATH_CHECKS.map(({ claim, rules }) => [claim, ...rules])).toEqual([
      ['the paths lead into the sandbox', 'sandbox.*'],
      ['the extensions of the paths are allowed', 'extension.not_allowed'],
      [
        'nothing at the paths is of a refused kind',
        'sandbox.no_facts',
        'sandbox.symlink',
        'sandbox.hard_link',
        'sandbox.fifo',
        'sandbox.socket',
        'sandbox.device',
        'sandbox.other_file_system',
        'sandbox.name_twin',
      ],
      ['the sandbox has room for it', 'sandbox.depth', 'quota.*'],
    ]);
  });

  const [, extensions, , room] = PATH_CHECKS;
  const write = { definition: ACTIONS.WRITE_FILE, args: PATHS.WRITE_FILE, policy };

  test('leave a path that leads outside to the first of them', () => {
    const flat = testPolicy({ sandbox: { depth_max: 0 } });
    const outside = { ...write, args: { path: '/etc/tool.sh', content: 'x' }, facts: null, policy: flat };
    expect(extensions!.findDenial(outside)).toBeNull();
    expect(room!.findDenial(outside)).toBeNull();
  });

  test.each([null, factsOf(), { paths: [fileFact()], usage: null }])('leave the facts %j to the third', (facts) => {
    const full = testPolicy({ sandbox: { bytes_max: 0, files_max: 0 } });
    expect(room!.findDenial({ ...write, facts, policy: full })).toBeNull();
  });
});

describe('the facts to gather', () => {
  test('canonical paths in the order of the definition, and the quota only if the sandbox can grow', () => {
    const usage = Object.fromEntries(
      withPath.map((name) => [name, gatherRequestFor(ACTIONS[name], PATHS[name], 'case_1', policy)?.usage]),
    );
    expect(usage).toEqual({
      READ_FILE: false,
      LIST_FILES: false,
      WRITE_FILE: true,
      CREATE_DIRECTORY: true,
      DELETE_FILE: false,
      RENAME_FILE: false,
    });
    const deferring = testPolicy({ knobs: { dotdot: 'defer' }, sandbox: { portable_names: true } });
    const args = { source: '/sandbox/x/../a.txt', destination: '/sandbox/b.md' };
    expect(gatherRequestFor(ACTIONS.RENAME_FILE, args, 'case_1', deferring)).toEqual({
      case_id: 'case_1',
      paths: ['/sandbox/a.txt', '/sandbox/b.md'],
      usage: false,
      portable_names: true,
    });
  });

  test.each([
    ['THINK', {}],
    ['FINISH', { response: '' }],
    ['READ_FILE', { path: '/etc/passwd' }],
    ['READ_FILE', { path: '/sandbox/../etc/passwd' }],
    ['READ_FILE', { path: 7 }],
    ['READ_FILE', {}],
    ['RENAME_FILE', { source: '/sandbox/a.txt', destination: '/sandbox/.turnpike-1' }],
    ['DELETE_FILE', { path: '/sandbox/run.sh' }],
  ] as const)('S0-49: nothing for %s of %j', (name, args) => {
    expect(gatherRequestFor(ACTIONS[name], args, 'case_1', policy)).toBeNull();
  });
});

describe('an action that the policy does not list', () => {
  test('has no extension rules, so its facts are gathered', () => {
    const unlisted = testPolicy({ actions: new Map() });
    const { paths } = gatherRequestFor(ACTIONS.DELETE_FILE, { path: '/sandbox/run.sh' }, 'case_1', unlisted)!;
    expect(paths).toEqual(['/sandbox/run.sh']);
  });
});

describe('an action that writes nothing in the sandbox', () => {
  test('cannot make it grow, whatever its risk', () => {
    const definition = { ...ACTIONS.READ_FILE, risk: 'write' } as const;
    expect(gatherRequestFor(definition, PATHS.READ_FILE, 'case_1', policy)?.usage).toBe(false);
  });

  test('creates none of its paths, at whatever depth', () => {
    const flat = testPolicy({ sandbox: { depth_max: 0 } });
    const definition = { ...ACTIONS.RENAME_FILE, write: null };
    const facts = factsOf(fileFact(), fileFact());
    expect(authorize('READ_FILE', PATHS.READ_FILE, filesFor('READ_FILE'), flat)).toMatchObject({ ok: true });
    expect(authorizePaths({ definition, args: PATHS.RENAME_FILE, facts, policy: flat })).toMatchObject({ ok: true });
  });
});

describe('allowed:', () => {
  test.each(NAMES)('S0-46 S0-53 S2-17: %s, with the arguments as proposed', (name) => {
    expect(authorize(name)).toEqual({ ok: true, value: PATHS[name] });
  });

  test('S0-46 S0-47: the authorized arguments have the canonical paths, and everything else unchanged', () => {
    const deferring = testPolicy({ knobs: { dotdot: 'defer' } });
    expect(authorize('WRITE_FILE', { path: '/sandbox/x/../b.txt', content: 'hello' }, undefined, deferring)).toEqual({
      ok: true,
      value: { path: '/sandbox/b.txt', content: 'hello' },
    });
  });

  test('an argument that is missing stays missing, and one that the action does not define is left out', () => {
    const { path } = PATHS.WRITE_FILE;
    expect(authorize('WRITE_FILE', { path: path! })).toStrictEqual({ ok: true, value: { path } });
    expect(authorize('READ_FILE', { path: path!, mode: 'all' })).toStrictEqual({ ok: true, value: { path } });
  });

  test.each(['THINK', 'FINISH'] as const)('%s needs no facts', (name) => {
    expect(authorize(name, PATHS[name], null)).toMatchObject({ ok: true });
  });
});

describe('the same arguments', () => {
  const args = { path: '/sandbox/x/../b.txt' };
  const deferring = testPolicy({ knobs: { dotdot: 'defer' } });

  test('are judged anew under another policy, in either order', () => {
    for (const [under, allowed] of [
      [deferring, true],
      [policy, false],
      [deferring, true],
    ] as const) {
      expect(authorize('READ_FILE', args, undefined, under).ok).toBe(allowed);
      expect(gatherRequestFor(ACTIONS.READ_FILE, args, 'case_1', under) !== null).toBe(allowed);
    }
  });

  test('are judged anew for another action, in either order', () => {
    const folder = { path: '/sandbox/docs/' };
    for (const [name, allowed] of [
      ['LIST_FILES', true],
      ['READ_FILE', false],
      ['LIST_FILES', true],
    ] as const) {
      expect(authorize(name, folder).ok).toBe(allowed);
    }
  });
});

describe('denied:', () => {
  test.each(NAMES)(
    'S0-50 S0-52 S2-16 S2-17: %s, once policy does not list it, whatever was validated before',
    (name) => {
      const actions = new Map(policy.actions);
      actions.delete(name);
      expect(authorize(name, PATHS[name], undefined, testPolicy({ actions }))).toEqual(
        denied('action.not_in_allowlist', 'LANE'),
      );
    },
  );

  test.each(withPath)('S0-47 S0-49 S0-50 S0-51 S2-16: %s outside the sandbox, with any of its paths', (name) => {
    const deferring = testPolicy({ knobs: { dotdot: 'defer' } });
    for (const field of ACTIONS[name].paths) {
      for (const [path, under] of [
        ['/etc/passwd', policy],
        ['/sandbox_evil/x.txt', policy],
        ['/sandbox/../etc/passwd.txt', policy],
        ['/sandbox/a/../../etc/passwd.txt', deferring],
      ] as const) {
        expect(authorize(name, { ...PATHS[name], [field]: path }, undefined, under)).toEqual(
          denied('sandbox.outside', 'SANDBOX'),
        );
      }
      expect(authorize(name, { ...PATHS[name], [field]: null })).toEqual(denied('sandbox.no_path', 'SANDBOX'));
    }
  });

  test.each(withPath)('S0-50: %s, if the file facts could not be determined', (name) => {
    const none = denied('sandbox.no_facts', 'SANDBOX');
    expect(authorize(name, PATHS[name], null)).toEqual(none);
    expect(authorize(name, PATHS[name], factsOf())).toEqual(none);
    expect(authorize(name, PATHS[name], factsOf(fileFact(), fileFact(), fileFact()))).toEqual(none);
  });

  test.each(['WRITE_FILE', 'CREATE_DIRECTORY'] as const)('S0-50: %s, if the usage is unknown', (name) => {
    const facts = { ...filesFor(name), usage: null };
    expect(authorize(name, PATHS[name], facts)).toEqual(denied('sandbox.no_facts', 'SANDBOX'));
  });

  test.each(['READ_FILE', 'LIST_FILES', 'DELETE_FILE', 'RENAME_FILE'] as const)('%s needs no quota', (name) => {
    expect(authorize(name, PATHS[name], { ...filesFor(name), usage: null })).toMatchObject({ ok: true });
  });

  const KINDS: readonly RefusedKind[] = [
    ...(['symlink', 'hard_link', 'fifo', 'socket', 'device', 'other_file_system', 'name_twin'] as const),
  ];
  test.each(KINDS)('S0-49 S0-51: any action on a %s', (kind) => {
    for (const name of withPath) {
      for (const [index] of ACTIONS[name].paths.entries()) {
        const paths = ACTIONS[name].paths.map(() => fileFact()).with(index, { status: 'refused', kind });
        expect(authorize(name, PATHS[name], factsOf(...paths))).toEqual(denied(`sandbox.${kind}`, 'SANDBOX'));
      }
    }
  });

  const LEFT_TO_EXECUTE: readonly PathFact[] = [
    { status: 'absent' },
    { status: 'no_parent' },
    { status: 'not_a_directory' },
    { status: 'directory', inode: '1', mtime_ns: '1' },
    ...(['PERMISSION_DENIED', 'IO_ERROR'] as const).map((cause) => ({ status: 'error', cause }) as const),
  ];
  test.each(LEFT_TO_EXECUTE)('S0-76: but not what %j names: EXECUTE reports it', (fact) => {
    for (const name of withPath) {
      expect(authorize(name, PATHS[name], factsOf(...ACTIONS[name].paths.map(() => fact)))).toMatchObject({ ok: true });
    }
  });

  test('S0-51: a violation is DENIED with POLICY_VIOLATION', () => {
    expect(FAULTS.POLICY_VIOLATION).toMatchObject({ outcome: 'DENIED', phase: 'AUTHORIZE' });
  });
});

describe('extensions', () => {
  const REFUSED = denied('extension.not_allowed', 'EXTENSION');
  const write = (path: string) => authorize('WRITE_FILE', { path, content: 'x' });
  const rename = (source: string, destination: string) => authorize('RENAME_FILE', { source, destination });

  test.each([
    ['.txt', true],
    ['.md', true],
    ['.sh', false],
    ['.TXT', false],
    ['.txt.sh', false],
    ['', false],
  ])(
    'S0-48 S0-51 S1-13 S1-16 S1-18: a file that ends with %j may be written, deleted, renamed to: %s',
    (ending, ok) => {
      const path = `/sandbox/tool${ending}`;
      const expected = ok ? { ok: true } : REFUSED;
      expect(write(path)).toMatchObject(expected);
      expect(authorize('DELETE_FILE', { path })).toMatchObject(expected);
      expect(rename('/sandbox/a.txt', path)).toMatchObject(expected);
    },
  );

  test('S1-13 S1-16: the root itself has no extension', () => {
    expect(write('/sandbox/')).toEqual(REFUSED);
    expect(authorize('DELETE_FILE', { path: '/sandbox/' })).toEqual(REFUSED);
  });

  test('S1-16 S1-17: renaming a script is denied too, unless policy follows 001 to the letter', () => {
    expect(rename('/sandbox/tool.sh', '/sandbox/tool.txt')).toEqual(REFUSED);
    expect(rename('/sandbox/a.txt', '/sandbox/a.md')).toMatchObject({ ok: true });
    const literal = policyWithExtensions('RENAME_FILE', { destination: ['.txt', '.md'] });
    const args = { source: '/sandbox/tool.sh', destination: '/sandbox/tool.txt' };
    expect(authorize('RENAME_FILE', args, undefined, literal)).toMatchObject({ ok: true });
  });

  test('do not restrict reading, listing and making directories', () => {
    expect(authorize('READ_FILE', { path: '/sandbox/config.json' })).toMatchObject({ ok: true });
    expect(authorize('LIST_FILES', { path: '/sandbox/a.sh/' })).toMatchObject({ ok: true });
    expect(authorize('CREATE_DIRECTORY', { path: '/sandbox/bin' })).toMatchObject({ ok: true });
  });

  test('S0-48: are judged on the canonical path', () => {
    const deferring = testPolicy({ knobs: { dotdot: 'defer' } });
    const args = { path: '/sandbox/a.txt/../tool.sh' };
    expect(authorize('DELETE_FILE', args, undefined, deferring)).toEqual(REFUSED);
  });

  test('are judged after the place, and before the file facts', () => {
    const link = factsOf({ status: 'refused', kind: 'symlink' });
    expect(authorize('DELETE_FILE', { path: '/etc/tool.sh' }, link)).toEqual(denied('sandbox.outside', 'SANDBOX'));
    expect(authorize('DELETE_FILE', { path: '/sandbox/tool.sh' }, link)).toEqual(REFUSED);
  });
});

describe('quota', () => {
  const small = testPolicy({ sandbox: { bytes_max: 100, files_max: 3, depth_max: 2 } });
  const with_ = (fact: PathFact, bytes: number, files: number): SandboxFacts => ({
    paths: [fact],
    usage: { bytes, files },
  });
  const write = (content: string, facts: SandboxFacts) =>
    authorize('WRITE_FILE', { path: '/sandbox/a.txt', content }, facts, small);
  const absent: PathFact = { status: 'absent' };

  test('S0-50 S0-51: a new file may fill the sandbox to the last byte, and not beyond', () => {
    expect(write('x'.repeat(10), with_(absent, 90, 0))).toMatchObject({ ok: true });
    expect(write('x'.repeat(11), with_(absent, 90, 0))).toEqual(denied('quota.bytes', 'QUOTA'));
    expect(write('é'.repeat(6), with_(absent, 90, 0))).toEqual(denied('quota.bytes', 'QUOTA'));
  });

  test('the size of a replaced file is subtracted', () => {
    expect(write('x'.repeat(30), with_(fileFact(20), 90, 3))).toMatchObject({ ok: true });
    expect(write('x'.repeat(31), with_(fileFact(20), 90, 3))).toEqual(denied('quota.bytes', 'QUOTA'));
  });

  test('S0-50 S0-51: the number of files is limited, also for directories, and replacing adds none', () => {
    expect(write('x', with_(absent, 0, 2))).toMatchObject({ ok: true });
    expect(write('x', with_(absent, 0, 3))).toEqual(denied('quota.files', 'QUOTA'));
    expect(write('x', with_(fileFact(), 10, 3))).toMatchObject({ ok: true });
    const make = (files: number) =>
      authorize('CREATE_DIRECTORY', { path: '/sandbox/d' }, with_(absent, 0, files), small);
    expect(make(2)).toMatchObject({ ok: true });
    expect(make(3)).toEqual(denied('quota.files', 'QUOTA'));
  });

  test('a directory that exists already adds none, and a full sandbox can be read and emptied', () => {
    const there: PathFact = { status: 'directory', inode: '1', mtime_ns: '1' };
    const make = (fact: PathFact) => authorize('CREATE_DIRECTORY', { path: '/sandbox/d' }, with_(fact, 0, 3), small);
    expect(make(there)).toMatchObject({ ok: true });
    expect(make({ status: 'no_parent' })).toEqual(denied('quota.files', 'QUOTA'));
    for (const name of ['READ_FILE', 'LIST_FILES', 'DELETE_FILE'] as const) {
      const args = { path: '/sandbox/a.txt' };
      expect(authorize(name, args, with_(fileFact(0), 101, 4), small)).toMatchObject({ ok: true });
    }
  });

  test('S0-50 S0-51: nothing is created below the greatest depth, but existing files can be read and deleted', () => {
    const facts = with_(absent, 0, 0);
    const at = (name: ActionName, args: JsonObject) => authorize(name, args, facts, small);
    expect(at('WRITE_FILE', { path: '/sandbox/a/b.txt', content: 'x' })).toMatchObject({ ok: true });
    expect(at('WRITE_FILE', { path: '/sandbox/a/b/c.txt', content: 'x' })).toEqual(denied('sandbox.depth', 'QUOTA'));
    expect(at('CREATE_DIRECTORY', { path: '/sandbox/a/b/' })).toMatchObject({ ok: true });
    expect(at('CREATE_DIRECTORY', { path: '/sandbox/a/b/c' })).toEqual(denied('sandbox.depth', 'QUOTA'));
    expect(at('READ_FILE', { path: '/sandbox/a/b/c.txt' })).toMatchObject({ ok: true });
    expect(at('DELETE_FILE', { path: '/sandbox/a/b/c.txt' })).toMatchObject({ ok: true });
    const two = factsOf(fileFact(), absent);
    const up = { source: '/sandbox/a/b/c.txt', destination: '/sandbox/c.txt' };
    const down = { source: '/sandbox/c.txt', destination: '/sandbox/a/b/c.txt' };
    expect(authorize('RENAME_FILE', up, two, small)).toMatchObject({ ok: true });
    expect(authorize('RENAME_FILE', down, two, small)).toEqual(denied('sandbox.depth', 'QUOTA'));
  });

  test('a link is reported before the quota is checked', () => {
    expect(write('x'.repeat(200), with_({ status: 'refused', kind: 'symlink' }, 100, 3))).toEqual(
      denied('sandbox.symlink', 'SANDBOX'),
    );
  });
});
