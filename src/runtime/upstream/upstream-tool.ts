// A tool of an upstream server as a tool of CALL_TOOL. What is true of it (whether what it is given leaves the
// platform, whether it may be repeated) is what the deployer has said, never what its server says.

import type { TObject } from 'typebox';
import { registrationProblem, ToolDefinition } from '../../contract/catalogue.js';
import type { JsonObject } from '../../contract/json.js';
import { CONFIDENTIALITY_FLAGS } from '../../contract/labels.js';
import type { UpstreamServer as Configured, UpstreamTool } from '../../contract/upstreams.js';
import { conforms } from '../../contract/validators.js';
import { NotExecuted } from '../../errors.js';
import { defineTool, type Tool } from '../effects/define.js';
import type { Definition } from './definitions.js';
import { decodedInput, heldAnything, heldInput, heldOutput } from './held-schema.js';
import { answerOf, answerSchema } from './tool-answer.js';
import type { UpstreamServer } from './upstream-server.js';
import { conformsWalked } from './walked-check.js';
import { shown, weakenedSchema, type WalkedSchema } from './weakened-schema.js';

const TIMEOUT_MS_DEFAULT = 30_000;
const RESULT_BYTES_DEFAULT = 1_048_576;

/** What the deployer says of a tool, or of all tools of its server. */
type Facts = Partial<Omit<UpstreamTool, 'tool'>>;

export const factsOf = ({ tools = [], ...server }: Configured, tool: string): Facts => {
  const { outside, confidentiality, timeout_ms, result_bytes_max } = server;
  const common = { outside, confidentiality, timeout_ms, result_bytes_max };
  const set = Object.fromEntries(Object.entries(common).filter(([, value]) => value !== undefined)) as Facts;
  return { ...set, ...tools.find((one) => one.tool === tool) };
};

/** The name by which lanes list a tool. */
export const nameOf = (configured: Configured, tool: string): string =>
  `${configured.name}.${factsOf(configured, tool).as ?? tool}`;

/** @returns the tool, or why it cannot be registered, in our own words */
export function upstreamTool(
  configured: Configured,
  definition: Definition,
  server: UpstreamServer,
): Tool | { readonly problem: string } {
  const { inputSchema, outputSchema, description } = definition.document;
  const walkedInput = weakenedSchema(inputSchema as JsonObject);
  const walkedOutput = outputSchema === undefined ? null : weakenedSchema(outputSchema as JsonObject);
  if (isProblem(walkedInput)) return { problem: `its input: ${walkedInput.problem}` };
  if (walkedOutput !== null && isProblem(walkedOutput)) return { problem: `its output: ${walkedOutput.problem}` };
  const name = nameOf(configured, definition.tool);
  const facts = factsOf(configured, definition.tool);
  const timeout = facts.timeout_ms ?? TIMEOUT_MS_DEFAULT;
  const bytesMax = facts.result_bytes_max ?? RESULT_BYTES_DEFAULT;
  const input = heldInput(walkedInput);
  const structured = walkedOutput === null ? heldAnything() : heldOutput(walkedOutput);
  const tool = defineTool({
    name,
    summary: shown(description) || name,
    // A JSON Schema as it is: `registrationProblem` below holds it against what can be registered.
    input: input.schema as unknown as TObject,
    output: answerSchema({ structured }) as unknown as TObject,
    idempotent: facts.idempotent ?? false,
    timeout,
    resultBytesMax: bytesMax,
    outside: facts.outside ?? true,
    confidentiality: facts.confidentiality ?? CONFIDENTIALITY_FLAGS,
    run: async (given, { idempotency_key, signal }) => {
      const decoded = decodedInput(input, given as JsonObject);
      if (decoded === null) throw unfit('a text in it does not hold the JSON that it should');
      if (!conformsWalked(walkedInput, decoded)) throw unfit("it does not conform to the tool's own schema");
      const call = { tool: definition.tool, input: decoded, idempotency_key };
      const idempotent = facts.idempotent ?? false;
      const pinned = { ...call, sha256: definition.sha256, idempotent, prepare_ms: Math.ceil(timeout / 2) };
      return { ...answerOf(await server.call(pinned, signal), { walked: walkedOutput, structured, bytesMax }) };
    },
  });
  const problem = problemOf(tool.definition);
  return problem === null ? tool : { problem };
}

function problemOf(definition: ToolDefinition): string | null {
  if (!conforms(ToolDefinition, definition)) return 'its name is none that a lane can list: give it one with `as`';
  return registrationProblem({ actions: [], tools: [definition], targets: [] });
}

const unfit = (why: string): NotExecuted => new NotExecuted(`the input was not sent: ${why}`, { retryable: false });

const isProblem = (made: WalkedSchema | { readonly problem: string }): made is { readonly problem: string } =>
  typeof (made as { readonly problem?: unknown }).problem === 'string';
