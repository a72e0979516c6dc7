// Names in a proposal: entries contain the names that the platform knows, and hashes of all others (S4-62, C90).

import { hashText } from '../../contract/free-text.js';
import type { Policy } from '../../policy/policy.js';
import type { PrivilegedRequest } from '../../policy/privileged-request.js';
import type { Identity } from '../validate-schema.js';

const VERSION = /^\d{1,6}\.\d{1,6}\.\d{1,6}$/;

/** The action and schema version of a payload as its trace records them. */
export function recordedIdentity(
  { action, schema_version }: Identity,
  policy: Policy,
): Pick<Identity, 'action' | 'schema_version'> {
  const isKnown = action === null || policy.actions.has(action) || policy.catalogue.action(action) !== undefined;
  return {
    action: isKnown ? action : hashText(action),
    schema_version: schema_version === null || VERSION.test(schema_version) ? schema_version : hashText(schema_version),
  };
}

/** Returns how to record names of unvalidated arguments: those in the action's schema stay, others are hashed. */
export function argumentNameRecorder(action: string, policy: Policy): (name: string) => string {
  const properties = policy.catalogue.action(action)?.args.properties ?? {};
  return (name) => (Object.hasOwn(properties, name) ? name : hashText(name));
}

/** The request with a hash in place of a tool or table that is not registered. AUTHORIZE denies such a request. */
export function withRecordedNames(privileged: PrivilegedRequest): PrivilegedRequest {
  const { unregistered, tool, write, read } = privileged;
  if (unregistered === 'tool.not_registered' && tool !== null) return { ...privileged, tool: hashText(tool) };
  if (unregistered !== 'target.not_registered') return privileged;
  return {
    ...privileged,
    write: write === null ? null : { ...write, table: hashText(write.table) },
    read: read === null ? null : hashText(read),
  };
}
