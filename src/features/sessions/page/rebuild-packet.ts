// Rebuilds a packet from its materials and compares it with its hash. So the page shows what the agent received, or
// says that it does not. Materials are content: a service records readings of them.

import { canonicalJson } from '../../../core/contract/json.js';
import type { Packet, PacketMaterial } from '../../../interfaces/inspector/contract/session-view.js';
import { stepPacket, type GateFinding, type NextStep, type SessionSpec } from '../contract/step-packet.js';
import { hex, type Hash } from '../../../interfaces/inspector/page/worker/compact-range.js';

export interface RebuiltPacket {
  readonly step: NextStep;
  /** Whether the packet has its recorded hash; null if this browser cannot hash. */
  readonly exact: boolean | null;
}

/**
 * @param hash null if this browser cannot hash
 * @param read returns the bytes of a material, which must be those that its entry names
 * @returns null if the materials are unavailable or do not produce a packet
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
  // The kernel has recorded it as one of the types of steps.
  const type = packet.type as NextStep['type'];
  const step = stepPacket({ ...packet, type, session_id, spec_id: spec.id, phase, task, findings });
  if (hash === null) return { step, exact: null };
  return { step, exact: hex(await hash(new TextEncoder().encode(canonicalJson(step)))) === packet.sha256 };
}
