import type { AnyStateMachine } from 'xstate';
import { canonicalJson } from '../src/core/contract/json.js';
import type { Catalogue } from '../src/core/contract/policy/catalogue.js';
import type { Policy } from '../src/core/policy/policy.js';
import { createAgentMachine, type AgentMachine } from './agent.js';
import { NO_FLAGS, type Flags } from './flags.js';
import { createMediatedMachine, type MediatedLogic, type MediatedMachine } from './mediated.js';
import { createOrchestratorMachine, type OrchestratorMachine } from './orchestrator.js';
import { createStepMachine, type StepMachine } from './step.js';

export { createAgentMachine, createMediatedMachine, createOrchestratorMachine, createStepMachine };
export type { AgentMachine, MediatedMachine, OrchestratorMachine, StepMachine };
export type { Command, Emission, Reply } from './emission.js';
export { FLAGS, type Flag, type Flags } from './flags.js';

/** The machines of one run tree, all under the same policy. */
export interface Machines {
  readonly orchestrator: OrchestratorMachine;
  readonly agent: AgentMachine;
  readonly step: StepMachine;
  readonly mediated: MediatedMachine;
}

/** Creates every machine of a run tree under one pinned policy. */
export function createMachines(policy: Policy): Machines {
  const mediated = createMediatedMachine(policy);
  const standalone = mediated as unknown as MediatedLogic;
  const delegating = mediated.provide({ actors: { db_write: standalone } }) as unknown as MediatedLogic;
  const step = createStepMachine(policy, { tool_gateway: delegating, db_write: standalone, db_read: standalone });
  const agent = createAgentMachine(policy, step, standalone);
  const orchestrator = createOrchestratorMachine(policy, agent, {
    promotion: delegating,
    export: standalone,
    tool_gateway: standalone,
  });
  return { orchestrator, agent, step, mediated };
}

/**
 * Serializes the machines: states, transitions, guards and actions by name, the registered actions, and the behaviour
 * flags in force, if any. Every run pins the hash of this text.
 */
export function machineDefinitions(
  machines: Machines,
  { registrations }: Catalogue,
  flags: Flags = NO_FLAGS,
  cedar: { readonly language: string; readonly engine: string } | null = null,
  roots: Readonly<Record<string, AnyStateMachine>> = {},
): string {
  const { orchestrator, agent, step, mediated } = machines;
  return canonicalJson({
    ...Object.fromEntries(Object.entries(roots).map(([name, { config }]) => [name, asData(config)])),
    orchestrator: asData(orchestrator.config),
    agent: asData(agent.config),
    step: asData(step.config),
    mediated: asData(mediated.config),
    registrations,
    ...(cedar === null ? {} : { cedar }),
    ...(flags.size === 0 ? {} : { flags: [...flags].sort((a, b) => a - b) }),
  });
}

/**
 * Functions (a context, an output) have no text of their own. Their behaviour follows from policy and contract, which
 * are also pinned.
 */
const asData = (config: unknown): unknown => JSON.parse(JSON.stringify(config)) as unknown;
