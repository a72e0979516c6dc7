// Ids of requests that are used again, at every entrance: random requests with few ids and few inputs, and restarts.
// No request ever gets the answer to another input, and none that is new stays without a record (0078).
// id-reuse.nightly.test.ts runs all of them.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { tool as langchainTool } from '@langchain/core/tools';
import { expect, test } from '@jest/globals';
import { tool as aiTool } from 'ai';
import Type from 'typebox';
import { z } from 'zod';
import { nanoidIds } from '../../../src/system/nanoid-ids.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { CLIENTS, type Client } from '../../../src/features/hooks/hook-event.js';
import { defineExternalTool, type Tool } from '../../../src/runtime/effects/define-effects.js';
import * as aiSdk from '../../../src/interfaces/sdk/ai-sdk.js';
import * as langchain from '../../../src/interfaces/sdk/langchain.js';
import * as mastra from '../../../src/interfaces/sdk/mastra.js';
import * as openai from '../../../src/interfaces/sdk/openai-agents.js';
import type { GovernedRun } from '../../../src/interfaces/sdk/sdk-calls.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { sized } from '../../fixtures/campaign.js';
import { codingEdit } from '../../fixtures/coding-policy.js';
import { callEvent, shellCall } from '../../fixtures/hooks/call-event.js';
import { random } from '../../fixtures/random.js';
import { CASE_AGENT, serviceEdit } from '../../fixtures/service.js';
import { make, phase, spec } from '../../fixtures/spec.js';
import { proposal } from '../../fixtures/tree.js';
import { sdkPolicy } from '../../interfaces/sdk/sdk-scenarios.js';
import { HttpBench } from '../../interfaces/http/http-harness.js';
import { call, clientOf, serviceOn } from '../../interfaces/mcp/mcp-harness.js';

/** Each has a run of its own, and fewer requests than a run may have denials. */
const ROUNDS = sized(2, 20);
const REQUESTS = 8;
const IDS = ['call_0', 'call_1'];
/** The even ones are allowed. */
const INPUTS = [0, 1, 2, 3];

/** `of` is the input that the answer is about, if the answer tells. */
type Answer = { readonly of?: number; readonly allowed: boolean } | 'conflict' | 'refused';
/** One run, or one session. */
type Ask = (id: string, input: number) => Promise<Answer>;

interface Entrance {
  readonly options: () => BenchOptions | Promise<BenchOptions>;
  /** Begins a round, or goes on with it after a restart. */
  readonly begin: (bench: Bench, round: number) => Promise<Ask>;
  /** Whether another input under a used id is a call of its own. Else it is a conflict. */
  readonly isOwnCall: boolean;
  readonly close?: () => Promise<void>;
}

const asConflict = (error: unknown): 'conflict' => {
  if ((error as { readonly code?: string }).code === 'IDEMPOTENCY_CONFLICT') return 'conflict';
  throw error;
};

/** The proposal of an input: the odd ones are for an action that no lane has. */
const proposalOf = (round: number, input: number): string =>
  JSON.stringify({
    ...proposal(input % 2 === 0 ? 'THINK' : 'SELF_DESTRUCT', {}),
    id: `00000000-0000-4000-8000-${String(round * 10 + input).padStart(12, '0')}`,
  });
const answerOf = (response: unknown): Answer => {
  const { proposal_id, outcome } = response as { readonly proposal_id: string; readonly outcome: string };
  // The same payload under a second id is a duplicate proposal.
  return { of: Number(proposal_id.at(-1)), allowed: outcome === 'SUCCESS' };
};

const library: Entrance = {
  options: () => ({}),
  isOwnCall: false,
  begin: async (bench, round) => {
    const { run_id } = await bench.turnpike.startAgent({ key: `run-${round}` });
    return (id, input) =>
      bench.turnpike.submit(run_id, proposalOf(round, input), { inputId: id }).then(answerOf, asConflict);
  },
};

let served: HttpBench | null = null;
const http: Entrance = {
  options: () => ({}),
  isOwnCall: false,
  begin: async (bench, round) => {
    await served?.server.close();
    served = await HttpBench.on(bench);
    const token = served.token();
    const begun = await served.ask('/agents', token, { json: {}, headers: { 'idempotency-key': `run-${round}` } });
    const { run_id } = (await begun.json()) as { readonly run_id: string };
    return async (id, input) => {
      const sent = { body: proposalOf(round, input), headers: { 'idempotency-key': id } };
      const response = await (served as HttpBench).ask(`/agents/${run_id}/steps`, token, sent);
      const json = (await response.json()) as { readonly code?: string };
      return response.status === 200 ? answerOf(json) : asConflict(json);
    };
  },
  close: async () => served?.server.close(),
};

const mcp: Entrance = {
  options: () => ({}),
  isOwnCall: false,
  begin: async (bench, round) => {
    const { run_id } = await bench.turnpike.startAgent({ key: `run-${round}` });
    const client = await clientOf(serviceOn(bench));
    return async (id, input) => {
      const called = await call(client, 'propose', { proposal: proposalOf(round, input), run_id }, id);
      if (called.text.includes('IDEMPOTENCY_CONFLICT')) return 'conflict';
      return answerOf(called.structured);
    };
  },
};

const mail = defineExternalTool({
  name: 'mail.send',
  input: Type.Object({ to: Type.Integer({ maximum: 9 }) }, { additionalProperties: false }),
});
const decisions: Entrance = {
  options: () => ({ edit: serviceEdit, tools: [mail] }),
  isOwnCall: false,
  begin: (bench, round) =>
    Promise.resolve((id, input) =>
      bench.turnpike
        .decide({
          ...{ ...CASE_AGENT, actor: `agent-${round}`, case: 'case-0001', key: id },
          ...{ tool: input % 2 === 0 ? 'mail.send' : 'billing.charge', input: { to: input } },
        })
        .then(({ decision }) => ({ allowed: decision }), asConflict),
    ),
};

/** Every input may begin a session: the answer of one that may is of no use here. */
const sessions: Entrance = {
  options: () => ({}),
  isOwnCall: false,
  begin: (bench, round) =>
    Promise.resolve((id, input) =>
      bench.turnpike.sessions
        .start({
          ...{
            spec: { ...spec(phase('p', [make('t')])), id: `spec-${round}-${id.replace('_', '-')}` },
            case: 'case-local',
            idempotencyKey: id,
          },
          ...{ actor: `agent-${input}`, by: { actor: 'anna', role: 'maintainer' } },
        })
        .then(({ error }): 'refused' => {
          if (error !== null) throw new Error(error.code);
          return 'refused';
        }, asConflict),
    ),
};

const withId = (client: Client, event: JsonObject, id: string): JsonObject =>
  client === 'cline'
    ? { ...event, tool_call: { ...(event['tool_call'] as JsonObject), id } }
    : client === 'gemini-cli'
      ? event
      : { ...event, tool_use_id: id };

const hooksOf = (client: Client): Entrance => ({
  options: () => ({ edit: codingEdit, hooks: true }),
  isOwnCall: true,
  begin: (bench, round) => {
    const gate = bench.turnpike.hooks;
    const project = join(bench.folder, 'project');
    mkdirSync(project, { recursive: true });
    const caller = { actor: 'coding-agent', role: 'CODING_AGENT', lane: 'CODING', case: 'case-1', project };
    const session =
      client === 'cline' ? { taskId: `s-${round}` } : { session_id: `s-${round}`, conversation_id: `s-${round}` };
    const ask: Ask = async (id, input) => {
      const command = input % 2 === 0 ? `echo ${input}` : `curl ${input}.example`;
      const event = { ...callEvent(client, ...shellCall(client, command)), ...session };
      const result = await gate?.answer(client, withId(client, event, id), caller, { version: '1', findings: [] });
      const text = JSON.stringify(result);
      return { allowed: !/"(?:deny|block)"|"cancel":true|"exit":2/.test(text) };
    };
    return Promise.resolve(ask);
  },
});

interface LangchainTool {
  invoke(call: object): Promise<{ readonly content: unknown }>;
}
/** Tools of an SDK: `hidden` is in no lane. */
interface Governed {
  readonly definitions: readonly Tool[];
  readonly call: (
    of: GovernedRun,
    of_call: { readonly tool: string; readonly id: string; readonly input: object },
  ) => Promise<unknown>;
}
const note = ({ text }: { readonly text: string }): object => ({ noted: text });
const SCHEMA = z.object({ text: z.string() });

const sdkOf = (govern: () => Governed | Promise<Governed>): Entrance => {
  let governed: Governed;
  return {
    options: async () => {
      governed = await govern();
      return { edit: sdkPolicy, tools: governed.definitions };
    },
    isOwnCall: true,
    begin: async (bench, round) => {
      const of = { actor: 'sdk-agent', role: 'SDK_AGENT', lane: 'SDK_WORK', case: 'case-1' };
      const run = await bench.turnpike.startAgent({ ...of, key: `run-${round}` });
      return async (id, input) => {
        const tool = input % 2 === 0 ? 'note' : 'hidden';
        const output = await governed
          .call({ turnpike: bench.turnpike, run }, { tool, id, input: { text: String(input) } })
          .catch((error: unknown) => `Error: ${String(error)}`);
        const found = /"noted"\s*:\s*"(\d)"/.exec(typeof output === 'string' ? output : JSON.stringify(output));
        if (found !== null) return { of: Number(found[1]), allowed: true };
        return String(output).includes('not executed') ? 'refused' : { allowed: false };
      };
    },
  };
};

const sdks: Readonly<Record<string, Entrance>> = {
  'ai-sdk': sdkOf(async () => {
    const tools = {
      note: aiTool({ inputSchema: SCHEMA, execute: note }),
      hidden: aiTool({ inputSchema: SCHEMA, execute: note }),
    };
    const governed = await aiSdk.governTools(tools);
    return {
      definitions: governed.definitions,
      call: async (of, { tool, id, input }) =>
        governed.for(of)[tool as 'note'].execute?.(input as never, { toolCallId: id, messages: [] }),
    };
  }),
  langchain: sdkOf(() => {
    const tools = ['note', 'hidden'].map((name) => langchainTool(note, { name, description: name, schema: SCHEMA }));
    const governed = langchain.governTools(tools);
    return {
      definitions: governed.definitions,
      call: async (of, { tool, id, input }) => {
        const found = governed.for(of).find(({ name }) => name === tool) as unknown as LangchainTool;
        const { content } = await found.invoke({ type: 'tool_call', id, name: tool, args: { ...input } });
        return content;
      },
    };
  }),
  'openai-agents': sdkOf(async () => {
    const tools = ['note', 'hidden'].map((name) => ({
      ...{ type: 'function' as const, name, description: name, parameters: z.toJSONSchema(SCHEMA) },
      invoke: async (...[, text]: readonly [never, string, never?]) =>
        note(JSON.parse(await Promise.resolve(text)) as never),
      needsApproval: () => Promise.resolve(false),
    }));
    const governed = await openai.governTools(tools);
    return {
      definitions: governed.definitions,
      call: (of, { tool, id, input }) => {
        const details = { toolCall: { callId: id } } as never;
        return Promise.resolve(
          governed
            .for(of)
            .find(({ name }) => name === tool)
            ?.invoke({} as never, JSON.stringify(input), details),
        );
      },
    };
  }),
  mastra: sdkOf(() => {
    const inputSchema = {
      '~standard': {
        validate: (value: unknown) => ({ value }),
        jsonSchema: { input: () => z.toJSONSchema(SCHEMA) },
      },
    };
    const toolOf = (id: string) => ({
      ...{ id, description: id, inputSchema },
      execute: (...[input]: readonly [{ readonly text: string }, object?]) => Promise.resolve(note(input)),
    });
    const governed = mastra.governTools({ note: toolOf('note'), hidden: toolOf('hidden') });
    return {
      definitions: governed.definitions,
      call: async (of, { tool, id, input }) =>
        governed.for(of)[tool as 'note'].execute(input as never, { agent: { toolCallId: id } }),
    };
  }),
};

const ENTRANCES: Readonly<Record<string, Entrance>> = {
  ...{ library, http, mcp, decisions, sessions },
  ...Object.fromEntries(CLIENTS.map((client) => [`hooks of ${client}`, hooksOf(client)])),
  ...Object.fromEntries(Object.entries(sdks).map(([name, entrance]) => [`tools of ${name}`, entrance])),
};

test.each(Object.entries(ENTRANCES))('0078: a used id gets no answer to another input: %s', async (_, entrance) => {
  const draw = random(78);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(draw() * list.length)] as T;
  let options = await entrance.options();
  let bench = await Bench.open(options);
  for (let round = 0; round < ROUNDS; round += 1) {
    let ask = await entrance.begin(bench, round);
    const restartAt = Math.floor(draw() * REQUESTS * 2);
    const bound = new Map<string, number>();
    const known = new Set<string>();
    for (let request = 0; request < REQUESTS; request += 1) {
      if (request === restartAt) {
        await entrance.close?.();
        await bench.turnpike.close();
        options = await entrance.options();
        bench = await Bench.reopen(bench, { ...options, clock: bench.clock, ids: nanoidIds() });
        ask = await entrance.begin(bench, round);
      }
      const [id, input] = [pick(IDS), pick(INPUTS)];
      const before = await bench.turnpike.ledger.size();
      const answer = await ask(id, input);
      const isRecorded = (await bench.turnpike.ledger.size()) > before;
      const isOther = bound.has(id) && bound.get(id) !== input;
      if (isOther && !entrance.isOwnCall) expect(answer).toBe('conflict');
      else if (answer !== 'refused') {
        if (answer === 'conflict') throw new Error(`${id} is no conflict`);
        expect(answer.of ?? input).toBe(input);
        // A payload that another id had is a duplicate proposal.
        if (answer.allowed) expect(input % 2).toBe(0);
        if (entrance.isOwnCall) expect(answer.allowed).toBe(input % 2 === 0);
      }
      if (!known.has(`${id} ${input}`)) expect(isRecorded).toBe(true);
      known.add(`${id} ${input}`);
      if (!bound.has(id)) bound.set(id, input);
    }
  }
  await entrance.close?.();
  await bench.close();
});
