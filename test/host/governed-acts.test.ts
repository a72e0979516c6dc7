// Acts of operators under each part of policy that can decide them: a hold, a condition that asks for approvals, an
// approval rule, and lanes that list the tool of the act.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { OPERATOR_ACTS, type OperatorAction } from '../../src/core/contract/run/operator-act.js';
import { Bench, type BenchOptions } from '../fixtures/bench.js';
import { sized } from '../fixtures/campaign.js';
import { proposal } from '../fixtures/tree.js';

const HELD = 'case-held';
const FREE = 'case-free';
const OPERATOR = { actor: 'olga operator', role: 'ARCHIVIST' } as const;
let bench: Bench;
afterEach(async () => {
  granted = 0;
  await bench.close();
});

/** An instance with content of two cases; the trees of the first belong to a matter. */
async function open(options: BenchOptions): Promise<void> {
  bench = await Bench.open(options);
  for (const [case_id, scope] of [
    [HELD, { matter_id: 'M-17' }],
    [FREE, { matter_id: 'M-18' }],
  ] as const) {
    const agent = await bench.turnpike.startAgent({ case: case_id, scope });
    await agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'in confidence' })));
    await agent.end();
  }
}

type Approved = { readonly approved?: string };

/** How each act is requested, and how one sees that it was executed. The first two: on a case, and on the ledger. */
const ACTS: Readonly<
  Record<
    string,
    {
      readonly action: OperatorAction;
      readonly hasCase: boolean;
      readonly run: (case_id: string, more?: Approved) => Promise<unknown>;
      readonly wasExecuted: (case_id: string) => boolean;
    }
  >
> = {
  erasure: {
    action: 'ERASE_CASE',
    hasCase: true,
    run: (case_id, more = {}) => bench.turnpike.erase({ ...OPERATOR, case: case_id, ...more }),
    wasExecuted: (case_id) => existsSync(join(bench.home, 'keys/cases', `${case_id}.1.erased`)),
  },
  'rotation of the signing key': {
    action: 'ROTATE_KEYS',
    hasCase: false,
    run: (_, more = {}) => bench.turnpike.rotateLedgerKey({ ...OPERATOR, ...more }),
    wasExecuted: () => readdirSync(join(bench.home, 'keys')).includes('key-history.list'),
  },
  'rotation of a case key': {
    action: 'ROTATE_KEYS',
    hasCase: true,
    run: (case_id, more = {}) => bench.turnpike.rotateCaseKeys({ ...OPERATOR, case: case_id, ...more }),
    wasExecuted: (case_id) => existsSync(join(bench.home, 'keys/cases', `${case_id}.1.replaced`)),
  },
  archive: {
    action: 'ARCHIVE_LEDGER',
    hasCase: true,
    run: (case_id, more = {}) => requestAct('ARCHIVE_LEDGER', [case_id], more),
    wasExecuted: () => granted > 0,
  },
  restore: {
    action: 'RESTORE_LEDGER',
    hasCase: false,
    run: (_, more = {}) => requestAct('RESTORE_LEDGER', [], more),
    wasExecuted: () => granted > 0,
  },
};

/** An act that the caller executes itself. */
let granted = 0;
async function requestAct(action: OperatorAction, cases: readonly string[], more: Approved): Promise<void> {
  const grant = await bench.turnpike.requestAct({ ...OPERATOR, ...more }, { action, cases, details: {} });
  granted += 1;
  await bench.turnpike.reportAct(grant, 'done');
}

const subjectOf = (name: string): string => OPERATOR_ACTS[ACTS[name]!.action].subject;
const condition = (name: string, when: string, annotations = ''): string =>
  `@id("held")\n${annotations}forbid (principal, action == Action::"${subjectOf(name)}", resource)\n${when};\n`;

/** What the ledger has of the acts: decision and outcome by tool. */
async function recorded(): Promise<readonly string[]> {
  const tools = Object.values(OPERATOR_ACTS).map(({ tool }) => tool as string);
  return (await bench.entries()).flatMap(({ type, body }) => {
    if (type !== 'audit_event' || !('action_type' in body)) return [];
    const { action_type, outcome, target, authz } = body;
    return tools.includes(target?.name ?? '')
      ? [`${action_type} ${outcome}${authz === undefined ? '' : ` ${authz.rule_id}`}`]
      : [];
  });
}

/** The shipped policy with a lane for operators, which the role ARCHIVIST may use. */
const withOperatorLane: NonNullable<BenchOptions['edit']> = (name, text) => {
  const tools = Object.values(OPERATOR_ACTS).map(({ tool }) => tool);
  if (name === 'lanes') {
    const lane = [
      '  - lane_id: LEDGER_OPERATIONS',
      '    purpose: Acts of operators on the ledger.',
      '    allowed_callers:',
      '      roles: [ARCHIVIST]',
      '    allowed_actions:',
      `      tools: [${[...new Set(tools)].join(', ')}]`,
      '    scope:',
      '      requires: []',
      '      prohibits: []',
      '    audit: { required: true, level: full }',
    ];
    return `${text.trimEnd()}\n${lane.join('\n')}\n`;
  }
  if (name !== 'roles') return text;
  const role = [
    '  - role_id: ARCHIVIST',
    '    description: A keeper of the ledger.',
    '    class: human',
    '    privileges: { lanes: [LEDGER_OPERATIONS] }',
  ];
  return `${text.trimEnd()}\n${role.join('\n')}\n`;
};

const approver = (actor: string) => ({ actor, role: 'ATTORNEY_ADMIN', decision: 'approve' as const });

describe.each(Object.keys(ACTS).slice(0, sized(2, 5)))('C101: the %s', (name) => {
  const { hasCase, run, wasExecuted } = ACTS[name]!;
  const case_id = hasCase ? HELD : '';
  const nothingHappened = (): void => expect(wasExecuted(case_id)).toBe(false);

  test('is allowed and recorded if policy says nothing about it', async () => {
    await open({});
    await run(case_id);
    expect(wasExecuted(case_id)).toBe(true);
    expect(await recorded()).toEqual(['authz_decision allow operator.not_limited', 'tool_call success']);
  });

  test('is denied by a condition, and recorded as denied', async () => {
    const when = hasCase ? `when { context has case && context.case == "${HELD}" }` : '';
    await open({ conditions: condition(name, when) });
    await expect(run(case_id)).rejects.toMatchObject({ code: 'ACT_DENIED', message: expect.stringContaining('held') });
    nothingHappened();
    expect(await recorded()).toEqual(['authz_decision deny held']);
    if (hasCase) await run(FREE);
  });

  if (hasCase) {
    test('is denied by a hold that is about every action of a matter', async () => {
      const conditions =
        '@id("held")\nforbid (principal, action, resource)\n' +
        'when { context.scope has matter_id && context.scope.matter_id == "M-17" };\n';
      const edit: NonNullable<BenchOptions['edit']> = (file, text) =>
        file === 'lanes' ? text.replace('client_session_id, run_id', 'client_session_id, matter_id, run_id') : text;
      await open({ edit, conditions });
      await expect(run(HELD)).rejects.toMatchObject({ code: 'ACT_DENIED' });
      nothingHappened();
      await run(FREE);
      expect(wasExecuted(FREE)).toBe(true);
    });
  }

  // What asks for it is decided in one place for all acts.
  const sources = name === 'erasure' ? ['a condition', 'an approval rule'] : ['an approval rule'];
  test.each(sources)('waits for a second person if %s asks for it', async (source) => {
    const annotations = '@approvals("1")\n@approver_role("ATTORNEY_ADMIN")\n';
    const rule = `  - { for: ${subjectOf(name)}, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n`;
    await open(
      source === 'a condition'
        ? { conditions: condition(name, '', annotations) }
        : {
            approvals: true,
            edit: (file, text) => (file === 'actions' ? text.replace('approvals:\n', `approvals:\n${rule}`) : text),
          },
    );
    const pending = await run(case_id).then(
      () => null,
      (error: unknown) => error as { readonly code: string; readonly message: string },
    );
    expect(pending).toMatchObject({ code: 'APPROVAL_PENDING' });
    nothingHappened();
    const [, asked = '', digest = ''] = /turnpike approve (\S+) ([0-9a-f]{64})/.exec(pending?.message ?? '') ?? [];
    await expect(run(case_id, { approved: asked })).rejects.toMatchObject({ code: 'APPROVAL_PENDING' });
    const own = await bench.turnpike.approve({ run: asked, digests: [digest], ...approver(OPERATOR.actor) });
    expect(own).toMatchObject([{ counted: false, rule_id: 'approval.by_requester' }]);
    if (hasCase) await expect(run(FREE, { approved: asked })).rejects.toMatchObject({ code: 'USAGE' });
    bench = await Bench.reopen(await closed(bench));
    const second = await bench.turnpike.approve({ run: asked, digests: [digest], ...approver('second person') });
    expect(second).toMatchObject([{ counted: true, rule_id: 'approval.granted' }]);
    nothingHappened();
    await run(case_id, { approved: asked });
    expect(wasExecuted(case_id)).toBe(true);
    await expect(run(case_id, { approved: asked })).rejects.toMatchObject({ code: 'ACT_DENIED' });
    expect((await recorded()).at(-1)).toBe('tool_call success');
  });

  test('is limited to the roles of the lane that lists its tool', async () => {
    await open({ edit: withOperatorLane });
    await run(case_id);
    expect(wasExecuted(case_id)).toBe(true);
    const other = { actor: 'olga operator', role: 'ATTORNEY_ADMIN' } as const;
    const request = { action: ACTS[name]!.action, cases: hasCase ? [FREE] : [], details: {} };
    await expect(bench.turnpike.requestAct(other, request)).rejects.toMatchObject({
      code: 'ACT_DENIED',
      message: expect.stringContaining('role.lane_not_granted'),
    });
  });
});

const closed = async (open: Bench): Promise<Bench> => {
  await open.turnpike.close();
  return open;
};
