// A step as the agent received it: its facts from the ledger and, on request, its text. The text is rebuilt from the
// materials and compared with the hash of the packet.

import { nameInLedger } from '../../../core/contract/entry-name.js';
import { useState } from 'preact/hooks';
import type { Packet, PacketMaterial } from '../../../interfaces/inspector/contract/session-view.js';
import type { NextStep } from '../contract/step-packet.js';
import { isReadingAllowed, useStore } from '../../../interfaces/inspector/page/views/common/context.js';
import {
  READING_NOTICE,
  showContent,
  WithheldNotice,
} from '../../../interfaces/inspector/page/views/events/artifact-content.js';
import { shortenHash, UntrustedText, VisibleText } from '../../../interfaces/inspector/page/views/common/text.js';
import { useAnswer } from '../../../interfaces/inspector/page/views/common/use-answer.js';
import { hasContentHash } from '../../../interfaces/inspector/page/worker/ledger-proof.js';
import { rebuildPacket } from './rebuild-packet.js';
import type { Store } from '../../../interfaces/inspector/page/store/store.js';
import { hex, browserSha256 } from '../../../interfaces/inspector/page/worker/compact-range.js';

interface PacketProps {
  readonly packet: Packet;
  readonly session_id: string;
}

export function PacketLine({ packet, session_id }: PacketProps) {
  const [open, setOpen] = useState(false);
  const { step_id, type, issue, log_index, sha256 } = packet;
  return (
    <li class="packet">
      <button type="button" class="plain" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class={open ? 'turn open' : 'turn'}>▸</span> packet <code>{shortenHash(sha256)}</code> <span>{type}</span>
        <small>
          {step_id.slice(step_id.lastIndexOf('-') + 1)}
          {issue > 1 && `, issue ${issue}`}, {nameInLedger(log_index)}
        </small>
      </button>
      {open && <PacketDetails packet={packet} session_id={session_id} />}
    </li>
  );
}

function PacketDetails({ packet, session_id }: PacketProps) {
  const store = useStore();
  const { step_id, log_index, run_id, lane_id, issue, proof_sha256, sha256, materials } = packet;
  return (
    <div class="packet-body">
      <dl class="facts wide">
        <dt>step</dt>
        <dd>
          <code>{step_id}</code>
          {issue > 1 && ` issue ${issue}`}
        </dd>
        <dt>issued</dt>
        <dd>
          <button type="button" class="link" onClick={() => store.goTo({ at: log_index, moves: 0 })}>
            with {nameInLedger(log_index)}
          </button>
        </dd>
        <dt>agent run</dt>
        <dd>
          <button type="button" class="link" onClick={() => store.select(run_id)}>
            {run_id}
          </button>
          {` in ${lane_id}`}
        </dd>
        <dt>step proof</dt>
        <dd>
          SHA-256 <code>{proof_sha256}</code> <small>the proof itself is not stored</small>
        </dd>
        <dt>packet</dt>
        <dd>
          SHA-256 <code>{sha256}</code>
        </dd>
        <dt>materials</dt>
        <dd>
          {materials.map((material) => (
            <MaterialSource material={material} key={material.sha256} />
          ))}
        </dd>
      </dl>
      <PacketText packet={packet} session_id={session_id} />
    </div>
  );
}

function MaterialSource({ material: { kind, log_index, sha256 } }: { readonly material: PacketMaterial }) {
  const store = useStore();
  return (
    <div>
      {kind === 'session_spec' ? 'the spec' : 'the review'} <code title={sha256}>{shortenHash(sha256)}</code> of{' '}
      <button type="button" class="link" onClick={() => store.change({ at: { at: log_index, moves: 0 }, own: false })}>
        {nameInLedger(log_index)}
      </button>
    </div>
  );
}

function PacketText({ packet, session_id }: PacketProps) {
  const store = useStore();
  const [isRequested, setRequested] = useState(false);
  const isGone = packet.materials.find(({ withheld }) => withheld !== null);
  if (isGone?.withheld != null) return <WithheldNotice why={isGone.withheld} sha256={isGone.sha256} />;
  if (isRequested || (isReadingAllowed.value && !store.isRecording))
    return <RebuiltPacketView packet={packet} session_id={session_id} />;
  return (
    <p>
      <button type="button" onClick={() => showContent(store, setRequested)}>
        Show its text
      </button>{' '}
      {store.info.value?.live === true && <small>{READING_NOTICE}</small>}
    </p>
  );
}

function RebuiltPacketView({ packet, session_id }: PacketProps) {
  const store = useStore();
  const canHash = store.proof.phase.value !== 'impossible';
  const answer = useAnswer(
    `packet ${packet.log_index}`,
    () =>
      rebuildPacket(session_id, packet, (material) => readMaterial(store, material), canHash ? browserSha256 : null),
    0,
  );
  if (answer.is === 'asking') return <p class="quiet">reading…</p>;
  if (answer.is === 'failed') return <p class="h-failed">It could not be read: {answer.why}</p>;
  if (answer.value === null) return <p class="quiet">Its materials are not available.</p>;
  const { step, exact } = answer.value;
  return (
    <>
      {exact === true && store.proof.phase.value === 'broken' && (
        <p class="quiet">Its hash is the recorded one. Nothing of this ledger counts as verified.</p>
      )}
      {exact === true && store.proof.phase.value !== 'broken' && (
        <p class="h-completed strong">✓ rebuilt here from the materials that the entries name: the hash matches</p>
      )}
      {exact === false && (
        <p class="h-failed strong">✕ rebuilt here, the hash differs: this is NOT what the agent received</p>
      )}
      {exact === null && <p class="quiet">not hashed: needs https or loopback</p>}
      <StepText step={step} />
    </>
  );
}

/** @throws Error for bytes that differ from what the entry names */
async function readMaterial(store: Store, { log_index, sha256 }: PacketMaterial) {
  const bytes = await store.feed.artifact(log_index, sha256);
  if (bytes === null || store.proof.phase.value === 'impossible') return bytes;
  const entry = await store.event(log_index);
  if (entry !== null && hasContentHash(entry.text, sha256) && hex(await browserSha256(bytes)) === sha256) return bytes;
  throw new Error(`these bytes differ from what entry ${nameInLedger(log_index)} names.`);
}

function StepText({ step }: { readonly step: NextStep }) {
  return (
    <>
      {step.task_title !== null && (
        <p>
          <UntrustedText text={step.task_title} whose="spec" />
        </p>
      )}
      <UntrustedText text={step.instruction} whose="spec" block />
      {step.findings.map(({ severity, message, file, line }) => (
        <p>
          <b>{severity}</b> {file !== undefined && <UntrustedText text={`${file}:${line ?? ''}`} whose="reviewer" />}{' '}
          <UntrustedText text={message} whose="reviewer" />
        </p>
      ))}
      <ul class="tools">
        {step.instructions.map(({ tool, action, description }) => (
          <li>
            <code>{tool}</code> {action}: <VisibleText text={description} />
          </li>
        ))}
      </ul>
    </>
  );
}
