// The todo application of the AuthZEN interoperability scenario: its subjects, its actions as tools, and its policy.

import { readFileSync } from 'node:fs';
import Type from 'typebox';
import { defineExternalTool } from '../../../../src/runtime/effects/define-effects.js';
import type { BenchOptions } from '../../../fixtures/bench.js';
import { serviceEdit } from '../../../fixtures/service.js';

const closed = { additionalProperties: false } as const;
const Entity = Type.Object(
  {
    type: Type.String(),
    id: Type.String({ maxLength: 100 }),
    properties: Type.Optional(Type.Object({ ownerID: Type.Optional(Type.String()) }, closed)),
  },
  closed,
);

const READS = ['can_read_user', 'can_read_todos'] as const;
const CHANGES = ['can_create_todo', 'can_update_todo', 'can_delete_todo'] as const;

export const todoTools = [...READS, ...CHANGES].map((name) =>
  defineExternalTool({ name, input: Type.Object({ subject: Entity, resource: Entity }, closed), timeout: 60_000 }),
);

/** The lanes of the application. Only lanes list tools, so each role has one. */
const LANES = {
  VIEWER: { id: 'TODO_VIEW', tools: READS },
  EDITOR: { id: 'TODO_EDIT', tools: [...READS, ...CHANGES] },
} as const;

/** Each subject, with its id in the requests. */
const SUBJECTS = {
  rick: ['CiRmZDA2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs', 'EDITOR'],
  morty: ['CiRmZDE2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs', 'EDITOR'],
  summer: ['CiRmZDI2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs', 'EDITOR'],
  beth: ['CiRmZDM2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs', 'VIEWER'],
  jerry: ['CiRmZDQ2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs', 'VIEWER'],
} as const;
export type SubjectName = keyof typeof SUBJECTS;

export const subjectId = (name: SubjectName): string => SUBJECTS[name][0];
export const grantOf = (name: SubjectName) => ({ actor: subjectId(name), role: `TODO_${SUBJECTS[name][1]}` });
export const laneOf = (name: SubjectName): string => LANES[SUBJECTS[name][1]].id;
export const nameOf = (id: string): SubjectName => {
  const found = (Object.keys(SUBJECTS) as SubjectName[]).find((name) => subjectId(name) === id);
  if (found === undefined) throw new Error(`no subject has the id ${id}`);
  return found;
};

/** The policy: both roles, and the lane of each. */
export const todoEdit: NonNullable<BenchOptions['edit']> = (name, text) => {
  const edited = serviceEdit(name, text);
  const added = Object.entries(LANES).map(([role, { id, tools }]) =>
    name === 'lanes'
      ? `  - lane_id: ${id}
    purpose: The todo application.
    allowed_callers: { roles: [TODO_${role}] }
    allowed_actions: { tools: [${tools.join(', ')}], writes: [], reads: [] }
    scope: { requires: [case_id, run_id], prohibits: [] }
    audit: { required: true, level: full }
`
      : `  - role_id: TODO_${role}
    description: A user of the todo application.
    class: agent
    privileges: { lanes: [${id}] }
`,
  );
  return name === 'actions' ? edited : `${edited}${added.join('')}`;
};

const ADDRESSES = { morty: 'morty@the-citadel.com', summer: 'summer@the-smiths.com' } as const;
const ownsAs = (name: keyof typeof ADDRESSES): string =>
  `principal == Actor::"${subjectId(name)}" && context.args.resource.properties.ownerID == "${ADDRESSES[name]}"`;

/** The administrator changes every todo, an editor their own. */
export const TODO_CONDITIONS = `@id("own_todos")
forbid (principal, action in [Action::"CALL_TOOL:can_update_todo", Action::"CALL_TOOL:can_delete_todo"], resource)
unless {
  principal == Actor::"${subjectId('rick')}" ||
  context.args.resource has properties && context.args.resource.properties has ownerID &&
  (${(['morty', 'summer'] as const).map(ownsAs).join(' || ')})
};
`;

interface Entity {
  readonly type: string;
  readonly id: string;
  readonly properties?: { readonly ownerID?: string };
}
interface Part {
  readonly subject: Entity;
  readonly action: { readonly name: string };
  readonly resource: Entity;
}
/** A case of the scenario. */
export type TodoCase =
  | { readonly api: 'evaluation'; readonly request: Part; readonly expected: boolean }
  | {
      readonly api: 'evaluations';
      readonly request: Omit<Part, 'resource'> & { readonly evaluations: readonly { readonly resource: Entity }[] };
      readonly expected: readonly { readonly decision: boolean }[];
    };

export const TODO_CASES: readonly TodoCase[] = readFileSync(new URL('todo-decisions.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as TodoCase);
