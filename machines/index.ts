import { canonicalJson } from '../src/contract/canonical-json.js';
import type { Policy } from '../src/policy/policy.js';
import { createAgentMachine, type AgentMachine } from './agent.js';
import { createMediatedMachine, type MediatedLogic, type MediatedMachine } from './mediated.js';
import { createOrchestratorMachine, type OrchestratorMachine } from './orchestrator.js';
import { createStepMachine, type StepMachine } from './step.js';

export { createAgentMachine, createMediatedMachine, createOrchestratorMachine, createStepMachine };
export type { AgentMachine, MediatedMachine, OrchestratorMachine, StepMachine };
export type { Command, Emission, Reply } from './emission.js';

export interface Machines {
  readonly orchestrator: OrchestratorMachine;
  readonly agent: AgentMachine;
  readonly step: StepMachine;
  readonly mediated: MediatedMachine;
}

/** Every machine of a run tree, judged by one pinned policy. */
export function createMachines(policy: Policy): Machines {
  const mediated = createMediatedMachine(policy);
  const db_write = mediated as unknown as MediatedLogic;
  const tool_gateway = mediated.provide({ actors: { db_write } }) as unknown as MediatedLogic;
  const step = createStepMachine(policy, tool_gateway);
  const agent = createAgentMachine(policy, step);
  return { orchestrator: createOrchestratorMachine(policy, agent), agent, step, mediated };
}

/** The machines as data: states, edges, guards and actions by name. Its hash is part of every run's pins. */
export function machineDefinitions(machines: Machines): string {
  const { orchestrator, agent, step, mediated } = machines;
  return canonicalJson({
    orchestrator: asData(orchestrator.config),
    agent: asData(agent.config),
    step: asData(step.config),
    mediated: asData(mediated.config),
  });
}

/** Functions (a context, an output) have no text of their own: they are policy and contract, which are pinned too. */
const asData = (config: unknown): unknown => JSON.parse(JSON.stringify(config)) as unknown;
