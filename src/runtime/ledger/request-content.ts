import { isJsonObject, type JsonObject, parseOwnJson } from '../../core/contract/json.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import { approvalDigest } from '../../core/policy/policy-features.js';
import type { Policy } from '../../core/policy/policy.js';
import { authorizePaths } from '../../core/step/authorization.js';

/** The request of a run that people may approve. */
export interface ApprovedRequest {
  readonly action: string;
  readonly args: JsonObject;
}

interface RequestingRun {
  readonly run: Pick<RunContext, 'run_id' | 'case_id'>;
  readonly policy: Policy;
}

/** The request that content of a run holds, with its digest; null if it holds none. */
export function requestIn(
  bytes: Uint8Array,
  { run: { run_id, case_id }, policy }: RequestingRun,
): { readonly request: ApprovedRequest; readonly digest: string } | null {
  const proposed = parseRequest(bytes);
  if (proposed === null) return null;
  const request = { ...proposed, args: canonicalizeArgs(proposed.action, proposed.args, policy) };
  return { request, digest: approvalDigest({ ...request, case_id, run_id }) };
}

/** The action and the arguments that content holds, as they were proposed; null if it holds none. */
export function parseRequest(bytes: Uint8Array): ApprovedRequest | null {
  const { action, args } = parseObject(bytes);
  return typeof action === 'string' && isJsonObject(args) ? { action, args } : null;
}

function parseObject(bytes: Uint8Array): JsonObject {
  try {
    const value: unknown = parseOwnJson(Buffer.from(bytes).toString('utf8'));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** Canonical paths, also for invalid arguments: nothing is decided here. */
export function canonicalizeArgs(action: string, args: JsonObject, policy: Policy): JsonObject {
  const definition = policy.catalogue.action(action);
  if (definition === undefined || definition.paths.length === 0) return args;
  const paths = definition.paths.map(() => ({ status: 'absent' }) as const);
  const canonical = authorizePaths({ definition, args, facts: { paths, usage: { bytes: 0, files: 0 } }, policy });
  return canonical.ok ? canonical.value : args;
}
