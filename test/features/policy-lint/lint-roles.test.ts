// The findings about roles: their places and texts.

import { describe, expect, test } from '@jest/globals';
import type { Role } from '../../../src/core/contract/policy/roles.js';
import { lintRoles } from '../../../src/features/policy-lint/lint-roles.js';
import { bareLane, bareRole, CATALOGUE, partsWith } from '../../core/policy/bare-policy.js';

const LANES = [
  bareLane(),
  bareLane({ lane_id: 'FILES', allowed_actions: { tools: ['sandbox.read_file'] } }),
  bareLane({ lane_id: 'EXPORTS', allowed_actions: { tools: ['export_bundle.create'] } }),
];
const lint = (role_id: string, kind: Role['class'], lanes: string[] = [], approver?: string): readonly string[] => {
  const approval = { for: 'export', approver_roles: [approver ?? ''], quorum: 1, expires_minutes: 1 };
  const parts = partsWith({
    lanes: LANES,
    roles: [bareRole(), bareRole({ role_id, class: kind, privileges: { lanes } })],
    actions: approver === undefined ? {} : { approvals: [approval] },
  });
  return [...lintRoles(parts, CATALOGUE)].map(
    ({ name, pointer, rule, severity, message }) => `${name} ${pointer} ${severity} ${rule}: ${message}`,
  );
};
const finding = (rule: string, problem: string): string => `roles /roles/1/class error ${rule}: role "BOSS" ${problem}`;

describe('a role', () => {
  test.each(['INTAKE-AGENT', 'intake.bot2', 'IntakeAgent', 'my..llm', '2AI'])('of people is not called %s', (name) => {
    const message = `role "${name}" is called an agent, and counts as a person who may approve`;
    expect(lint(name, 'human')).toEqual([`roles /roles/1/class error role.agent_as_human: ${message}`]);
    expect(lint(name, 'agent')).toEqual([]);
    expect(lint(name, 'system')).toEqual([]);
  });

  test.each(['AGENCY', 'BOTTOM', 'MAINTAINER', 'BOSS'])('of people may be called %s', (name) => {
    expect(lint(name, 'human')).toEqual([]);
  });

  test('of people does not work on files', () => {
    expect(lint('BOSS', 'human', ['WORK', 'FILES'])).toEqual([
      finding('role.agent_as_human', 'works on files as agents do, and counts as a person'),
    ]);
    expect(lint('BOSS', 'agent', ['FILES'])).toEqual([]);
  });

  test('does not both work as agents do and approve', () => {
    expect(lint('BOSS', 'human', ['EXPORTS', 'WORK'], 'BOSS')).toEqual([
      finding('role.acts_and_approves', 'has a lane for the work of agents, and approves'),
    ]);
    expect(lint('BOSS', 'human', ['EXPORTS'], 'BOSS')).toEqual([]);
    expect(lint('BOSS', 'human', ['WORK'], 'OTHER')).toEqual([]);
    expect(lint('BOSS', 'human', ['WORK'])).toEqual([]);
    expect(lint('BOSS', 'human', ['NOWHERE'], 'BOSS')).toEqual([]);
  });

  test('of the system does not work as agents do', () => {
    expect(lint('BOSS', 'system', ['EXPORTS', 'WORK'])).toEqual([
      finding('role.agent_as_system', 'has a lane for the work of agents, and counts as the platform'),
    ]);
    expect(lint('BOSS', 'system', ['EXPORTS'])).toEqual([]);
    expect(lint('BOSS', 'system', ['NOWHERE'])).toEqual([]);
  });
});
