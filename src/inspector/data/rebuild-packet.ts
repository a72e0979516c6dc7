// A packet made again of its materials, and held against its hash: what is shown is what the agent was handed, or it is
// said that it is not. Materials are content: to read them is recorded where a service gives them.

import { canonicalJson } from '../../contract/canonical-json.js';
import type { Packet, PacketMaterial } from '../../contract/inspection/inspection.js';
import { stepPacket, type GateFinding, type NextStep, type SessionSpec } from '../../contract/session/step-packet.js';
import { hex, type Hash } from '../worker/merkle.js';

export interface RebuiltPacket {
  readonly step: NextStep;
  /** Whether it has the hash that the packet had; null where this browser cannot hash. */
  readonly exact: boolean | null;
}

/**
 * @param hash null where this browser cannot hash
 * @param read the bytes of a material, which are those that its entry names
 * @returns null where the materials are not to be had, or do not make it
 */
export async function rebuildPacket(
  session_id: string,
  packet: Packet,
  read: (material: PacketMaterial) => Promise<Uint8Array<ArrayBuffer> | null>,
  hash: Hash | null,
): Promise<RebuiltPacket | null> {
  const values: unknown[] = [];
  for (const material of packet.materials) {
    const bytes = await read(material);
    if (bytes === null) return null;
    values.push(JSON.parse(new TextDecoder().decode(bytes)));
  }
  const [spec, review] = values as [SessionSpec | undefined, { readonly findings?: readonly GateFinding[] }?];
  const phase = spec?.phases.find(({ id }) => id === packet.phase_id);
  const task = phase?.tasks.find(({ id }) => id === packet.task_id) ?? null;
  if (spec === undefined || phase === undefined || (task === null && packet.task_id !== null)) return null;
  const findings = review?.findings ?? [];
  const rebuilt = (with_command: boolean): NextStep =>
    stepPacket({ ...packet, session_id, spec_id: spec.id, phase, task, findings, with_command });
  if (hash === null) return { step: rebuilt(true), exact: null };
  // Older sessions left out the command of a verification that had words of its own.
  for (const step of [rebuilt(true), rebuilt(false)]) {
    if (hex(await hash(new TextEncoder().encode(canonicalJson(step)))) === packet.sha256) return { step, exact: true };
  }
  return { step: rebuilt(true), exact: false };
}
