// Mistakes that make a spec invalid, one by one. No other rule is needed: a spec is accepted exactly if an agent that
// follows the loop's rules can complete it.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  isVerifyTask,
  SPEC_TASKS_MAX,
  type SessionSpec,
  type SpecGate,
} from '../../../../../src/features/sessions/contract/session-spec.js';
import { checkSpec, SPEC_FINDINGS_MAX } from '../../../../../src/features/sessions/rules/spec/check-spec.js';
import { sized } from '../../../../fixtures/campaign.js';
import { character } from '../../../../fixtures/characters.js';
import { anySpec, largeSpec, make, phase, spec, verify } from '../../../../fixtures/spec.js';

const LANES = new Set(['SANDBOX_FILES']);

/** `rule path` of every finding. */
const found = (value: unknown): string[] => checkSpec(value, LANES).findings.map(({ rule, path }) => `${rule} ${path}`);
const messages = (value: unknown): string[] => checkSpec(value, LANES).findings.map(({ message }) => message);

const good = spec(
  phase('a', [make('a1'), make('a2', ['a1'], { lane: 'SANDBOX_FILES' }), verify('a3', ['a2'])], { reviewer: 'manual' }),
  phase('b', [make('b1', ['a1', 'a3']), verify('b2')]),
);

test('a valid spec is returned unchanged, without findings', () => {
  const check = checkSpec(good, LANES);
  expect(check).toEqual({ findings: [], spec: good });
  expect(check.spec).toBe(good);
});

describe('shape', () => {
  /** The valid spec with other values at these places; undefined removes a member. */
  const changed = (edits: Readonly<Record<string, unknown>>): unknown => {
    const draft: unknown = structuredClone(good);
    for (const [pointer, value] of Object.entries(edits)) {
      const parts = pointer.split('/').slice(1);
      const holder = parts.slice(0, -1).reduce<unknown>((at, part) => Reflect.get(at as object, part), draft);
      Reflect.set(holder as object, parts.at(-1) ?? '', value);
    }
    return JSON.parse(JSON.stringify(draft));
  };

  test.each<readonly [string, unknown, readonly string[]]>([
    ['no object', null, ['schema.type ']],
    ['a list', [], ['schema.type ']],
    ['another version', changed({ '/spec_version': 2 }), ['version.mismatch /spec_version']],
    ['an unknown key', changed({ '/extra': 1 }), ['schema.unknown_key /extra']],
    ['no phases', changed({ '/phases': undefined }), ['schema.missing_key ']],
    ['no phase', changed({ '/phases': [] }), ['schema.value /phases']],
    ['a phase without tasks', changed({ '/phases/1/tasks': [] }), ['schema.value /phases/1/tasks']],
    ['a malformed phase', changed({ '/phases/1': 'b' }), ['schema.type /phases/1']],
    ['a malformed task', changed({ '/phases/0/tasks/1': 7 }), ['schema.type /phases/0/tasks/1']],
    ['an id that is a path', changed({ '/phases/0/tasks/1/id': '../a' }), ['schema.value /phases/0/tasks/1/id']],
    ['an invalid type', changed({ '/phases/0/tasks/0/type': 'deploy' }), ['schema.value /phases/0/tasks/0/type']],
    [
      'C63 a task without an instruction',
      changed({ '/phases/0/tasks/0/instruction': undefined }),
      ['schema.missing_key /phases/0/tasks/0'],
    ],
    [
      'C63 a task with an empty instruction',
      changed({ '/phases/0/tasks/0/instruction': '' }),
      ['schema.value /phases/0/tasks/0/instruction'],
    ],
    [
      'a command on an implementation task',
      changed({ '/phases/0/tasks/0/command': ['rm'] }),
      ['schema.unknown_key /phases/0/tasks/0/command'],
    ],
    [
      'a command as text, which a shell would have to read',
      changed({ '/phases/0/tasks/2/command': 'node --version' }),
      ['schema.type /phases/0/tasks/2/command'],
    ],
    [
      'mistakes in several places',
      changed({ '/title': 1, '/phases/0/title': '', '/phases/1/tasks/0/title': null }),
      ['schema.type /title', 'schema.value /phases/0/title', 'schema.type /phases/1/tasks/0/title'],
    ],
  ])('%s', (_what, value, expected) => {
    expect(found(value)).toEqual(expected);
    expect(checkSpec(value, LANES).spec).toBeNull();
  });

  test('a key with the name of an inherited property is unknown', () => {
    expect(found(JSON.parse(`{"__proto__": {"spec_version": 1}, ${JSON.stringify(good).slice(1)}`))).toEqual([
      'schema.unknown_key /__proto__',
    ]);
  });

  test('half of a surrogate pair is not a text', () => {
    expect(found(spec(phase('a', [make('a1', [], { instruction: 'x\ud800' })], { reviewer: 'manual' })))).toEqual([
      'text.malformed /phases/0/tasks/0/instruction',
    ]);
  });

  test(`rejects more than ${SPEC_TASKS_MAX} tasks, whatever they contain`, () => {
    const tasks = Array.from({ length: SPEC_TASKS_MAX }, () => ({}));
    expect(found({ phases: [{ tasks }] })).not.toContain('spec.too_many_tasks ');
    expect(found({ phases: [{ tasks }, { tasks: [{}] }] })).toEqual(['spec.too_many_tasks ']);
    expect(checkSpec(largeSpec(SPEC_TASKS_MAX), LANES).findings).toEqual([]);
  });

  test('rejects a task with too many dependencies before they are compared', () => {
    const ids = (count: number) => Array.from({ length: count }, (_, index) => `d${index}`);
    const other = { title: 'not told any more' };
    expect(found({ ...spec(phase('a', [make('a1', ids(257)), verify('a2')])), other })).toEqual([
      'schema.value /phases/0/tasks/0/depends_on',
    ]);
    const widest = checkSpec(spec(phase('a', [make('a1', ids(256)), verify('a2')])), null);
    expect(widest.findings.map(({ rule }) => rule)).toEqual(
      ids(SPEC_FINDINGS_MAX).map(() => 'task.unknown_dependency'),
    );
  });
});

describe('ids', () => {
  test('of phases are unique', () => {
    expect(found(spec(phase('a', [verify('a1')]), phase('a', [verify('a2')])))).toEqual([
      'phase.duplicate_id /phases/1/id',
    ]);
  });

  test('of tasks are unique in the whole spec; dependencies are checked only then', () => {
    const twice = spec(
      phase('a', [make('x', ['nowhere']), verify('a1')]),
      phase('b', [make('x', ['x']), verify('b1')]),
    );
    expect(found(twice)).toEqual(['task.duplicate_id /phases/1/tasks/0/id']);
    expect(messages(twice)).toEqual(['phase "a" has a task "x" already']);
  });

  test('may be shared by a phase and a task, and may be any word of JavaScript', () => {
    const ids = ['constructor', 'toString', 'valueOf', 'hasOwnProperty'];
    expect(found(spec(phase('x', [make('x'), ...ids.map((id) => make(id, ['x'])), verify('v', ids)])))).toEqual([]);
  });
});

describe('dependencies', () => {
  test.each<readonly [string, SessionSpec, readonly string[], string]>([
    [
      'on a missing task',
      spec(phase('a', [make('a1', ['nowhere']), verify('a2')])),
      ['task.unknown_dependency /phases/0/tasks/0/depends_on/0'],
      'task "a1" depends on "nowhere", which is no task of this spec',
    ],
    [
      'on a phase',
      spec(phase('a', [make('a1'), verify('a2')]), phase('b', [make('b1', ['a1', 'a']), verify('b2')])),
      ['task.unknown_dependency /phases/1/tasks/0/depends_on/1'],
      'task "b1" depends on "a", which is no task of this spec',
    ],
    [
      'on a task of a later phase',
      spec(phase('a', [make('a1', ['b1']), verify('a2')]), phase('b', [make('b1'), verify('b2')])),
      ['task.later_dependency /phases/0/tasks/0/depends_on/0'],
      'task "a1" depends on "b1", which is in a later phase',
    ],
    [
      'of a task on a verification of its own phase, which comes after all tasks',
      spec(phase('a', [verify('a1'), make('a2', ['a1'])])),
      ['task.waits_for_verification /phases/0/tasks/1/depends_on/0'],
      'task "a2" depends on "a1", a verification of the same phase, which comes after all that the phase makes',
    ],
    [
      'on itself',
      spec(phase('a', [make('a1', ['a1']), verify('a2')])),
      ['task.cycle /phases/0/tasks/0/depends_on'],
      'task "a1" depends on itself',
    ],
    [
      'in a circle, which is named from its first task on',
      spec(phase('a', [make('a1', ['a3']), make('a2', ['a1']), make('a3', ['a2']), verify('a4')])),
      ['task.cycle /phases/0/tasks/0/depends_on'],
      'tasks depend on one another in a circle: "a1" -> "a3" -> "a2" -> "a1"',
    ],
    [
      'in a circle into which another task leads',
      spec(phase('a', [make('a1', ['a3']), make('a2', ['a3']), make('a3', ['a2']), verify('a4')])),
      ['task.cycle /phases/0/tasks/1/depends_on'],
      'tasks depend on one another in a circle: "a2" -> "a3" -> "a2"',
    ],
    [
      'of verifications in a circle',
      spec(phase('a', [verify('a1', ['a2']), verify('a2', ['a1'])])),
      ['task.cycle /phases/0/tasks/0/depends_on'],
      'tasks depend on one another in a circle: "a1" -> "a2" -> "a1"',
    ],
  ])('%s', (_what, value, expected, message) => {
    expect(found(value)).toEqual(expected);
    expect(messages(value)).toEqual([message]);
  });

  test('reports each cycle, also one that depends on another', () => {
    const knots = [make('a', ['x', 'b']), make('b', ['a']), make('x', ['y']), make('y', ['x']), verify('v', ['a'])];
    expect(found(spec(phase('p', knots)))).toEqual([
      'task.cycle /phases/0/tasks/2/depends_on',
      'task.cycle /phases/0/tasks/0/depends_on',
    ]);
  });

  test('reports a cycle through a whole spec in one line', () => {
    const ids = Array.from({ length: SPEC_TASKS_MAX - 1 }, (_, index) => `t${index}`);
    const circle = ids.map((id, index) => make(id, [ids[(index + 1) % ids.length]!]));
    expect(messages(spec(phase('p', [...circle, verify('v')])))).toEqual([
      'tasks depend on one another in a circle: "t0" -> "t1" -> "t2" -> "t3" -> "t4" -> "t5" -> "t6" -> "t7" -> ' +
        '... (19991 more) -> "t0"',
    ]);
  });

  test('accepts a spec exactly if it can be completed', () => {
    const counts = { yes: 0, no: 0 };
    fc.assert(
      fc.property(anySpec, (value) => {
        const { spec: sound } = checkSpec(value, null);
        counts[sound === null ? 'no' : 'yes'] += 1;
        expect(sound !== null).toBe(canBeFinished(value));
      }),
      { numRuns: sized(1_000, 2_000), seed: 1 },
    );
    expect(Math.min(counts.yes, counts.no)).toBeGreaterThan(200);
  });
});

/** Phase by phase: does every task that can start, then runs every verification that can start. */
function canBeFinished({ phases }: SessionSpec): boolean {
  const done = new Set<string>();
  for (const { tasks } of phases) {
    for (const kind of [false, true]) {
      let open = tasks.filter((task) => isVerifyTask(task) === kind);
      while (open.length > 0) {
        const next = open.find(({ depends_on = [] }) => depends_on.every((id) => done.has(id)));
        if (next === undefined) return false;
        done.add(next.id);
        open = open.filter((task) => task !== next);
      }
    }
  }
  return true;
}

describe('commands', () => {
  const verified = (over: object): unknown => spec(phase('a', [make('a1'), { ...verify('a2'), ...over }]));

  test.each<readonly [string, object, readonly string[]]>([
    ['C68 none', { command: undefined }, ['task.no_command /phases/0/tasks/1']],
    ['C68 an empty list', { command: [] }, ['task.no_command /phases/0/tasks/1']],
    ['no program', { command: ['', 'x'] }, ['command.empty /phases/0/tasks/1/command/0']],
    ['an empty argument, which is one', { command: ['node', ''] }, []],
    ['a NUL byte', { command: ['node', 'a\0b'] }, ['command.nul_byte /phases/0/tasks/1/command/1']],
    ['a folder elsewhere', { cwd: '/etc' }, ['folder.outside_sandbox /phases/0/tasks/1/cwd']],
    ['a folder above', { cwd: '/sandbox/../etc' }, ['folder.outside_sandbox /phases/0/tasks/1/cwd']],
    ['the sandbox itself', { cwd: '/sandbox/' }, []],
    ['a folder in it', { cwd: '/sandbox/a/b' }, []],
    ['C27 a folder with a slash at its end', { cwd: '/sandbox/a/' }, []],
    ['C21 another spelling', { cwd: '/sandbox/a/./b' }, ['folder.outside_sandbox /phases/0/tasks/1/cwd']],
    ['C28 a backslash', { cwd: '/sandbox/a\\b' }, ['folder.outside_sandbox /phases/0/tasks/1/cwd']],
    ['C30 a reserved name', { cwd: '/sandbox/.Turnpike-x' }, ['folder.outside_sandbox /phases/0/tasks/1/cwd']],
  ])('%s', (_what, over, expected) => {
    const value = JSON.parse(JSON.stringify(verified(over))) as unknown;
    expect(found(value)).toEqual(expected);
  });

  test('C68 reports a verification without a command together with its other mistakes', () => {
    const value = JSON.parse(JSON.stringify(verified({ command: undefined, title: undefined }))) as unknown;
    expect(found(value)).toEqual(['task.no_command /phases/0/tasks/1', 'schema.missing_key /phases/0/tasks/1']);
    expect(messages(value)).toEqual(['verification "a2" has no command', '/phases/0/tasks/1 has no "title"']);
  });
});

describe('gates', () => {
  const gated = (gate: object): unknown => spec(phase('a', [make('a1')], gate as SpecGate));

  test.each<readonly [string, object, readonly string[]]>([
    ['a command without one', { reviewer: 'command' }, ['gate.no_command /phases/0/gate']],
    ['an empty command', { reviewer: 'command', command: [] }, ['gate.no_command /phases/0/gate/command']],
    ['a command', { reviewer: 'command', command: ['node'], cwd: '/sandbox/a' }, []],
    [
      'code with a command',
      { reviewer: 'callback', command: ['node'] },
      ['gate.command_unused /phases/0/gate/command'],
    ],
    ['a person with a folder', { reviewer: 'manual', cwd: '/sandbox/' }, ['gate.command_unused /phases/0/gate/cwd']],
    ['no such reviewer', { reviewer: 'nobody' }, ['schema.value /phases/0/gate/reviewer']],
    ['no program', { reviewer: 'command', command: [''] }, ['command.empty /phases/0/gate/command/0']],
    [
      'a folder elsewhere',
      { reviewer: 'command', command: ['a'], cwd: '/' },
      ['folder.outside_sandbox /phases/0/gate/cwd'],
    ],
  ])('%s', (_what, gate, expected) => {
    expect(found(gated(gate))).toEqual(expected);
  });

  test('a phase without any check gets a warning, and can be completed', () => {
    const { findings, spec: sound } = checkSpec(spec(phase('a', [make('a1')])), LANES);
    expect(findings).toEqual([
      {
        severity: 'warning',
        rule: 'phase.unchecked',
        path: '/phases/0',
        message: 'phase "a" has no verification and no gate: nothing checks it',
      },
    ]);
    expect(sound).not.toBeNull();
  });
});

describe('lanes', () => {
  const elsewhere = spec(phase('a', [make('a1', [], { lane: 'NOWHERE' }), verify('a2', [], { lane: 'NOWHERE' })]));

  test('of tasks and verifications must exist in the contract', () => {
    expect(found(elsewhere)).toEqual(['lane.unknown /phases/0/tasks/0/lane', 'lane.unknown /phases/0/tasks/1/lane']);
  });

  test('are not checked without a contract', () => {
    expect(checkSpec(elsewhere, null)).toMatchObject({ findings: [], spec: elsewhere });
  });
});

describe('findings', () => {
  test(`are limited to ${SPEC_FINDINGS_MAX} errors and as many warnings, and warnings displace no error`, () => {
    const unchecked = Array.from({ length: 300 }, (_, index) => phase(`p${index}`, [make(`t${index}`, ['t299'])]));
    const { findings, spec: sound } = checkSpec(spec(...unchecked), null);
    expect(sound).toBeNull();
    expect(findings.map(({ severity }) => severity)).toEqual([
      ...Array.from({ length: SPEC_FINDINGS_MAX }, () => 'error'),
      ...Array.from({ length: SPEC_FINDINGS_MAX }, () => 'warning'),
    ]);
    const shapeless = spec(...Array.from({ length: 300 }, () => ({}) as never));
    expect(checkSpec(shapeless, null).findings.length).toBe(SPEC_FINDINGS_MAX);
  });

  test('are one line of printable ASCII, whatever the document contains', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.string({ unit: character }), (value, text) => {
        const documents = [
          value,
          { ...good, [text]: value },
          { ...good, phases: [{ ...good.phases[0], [text]: 1, gate: { reviewer: text, cwd: text } }] },
          spec(
            phase('a', [
              { ...make('a1'), [text]: value, depends_on: [text] },
              { ...verify(text), command: [text] },
            ]),
          ),
        ];
        for (const document of documents) {
          for (const { message } of checkSpec(JSON.parse(JSON.stringify(document)), LANES).findings) {
            expect(message).toMatch(/^[ -~]+$/);
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
