// A step as the agent was handed it: what the ledger says of it, and, when somebody asks for them, its words, which are
// made again of their materials and held against the hash of the packet.

import { useState } from 'preact/hooks';
import type { Packet, PacketMaterial } from '../../contract/inspection.js';
import type { NextStep } from '../../contract/step-packet.js';
import { reading, useStore } from './context.js';
import { RECORDED, show, Withheld } from './content.js';
import { short, Untrusted, Visible } from './text.js';
import { useAnswer } from './use-answer.js';
import { namesContent } from '../data/held.js';
import { madePacket } from '../data/packet.js';
import type { Store } from '../store/store.js';
import { hex, subtle } from '../worker/merkle.js';

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
        <span class={open ? 'turn open' : 'turn'}>▸</span> packet <code>{short(sha256)}</code> <span>{type}</span>
        <small>
          {step_id.slice(step_id.lastIndexOf('-') + 1)}
          {issue > 1 && `, issue ${issue}`}, #{log_index}
        </small>
      </button>
      {open && <Opened packet={packet} session_id={session_id} />}
    </li>
  );
}

function Opened({ packet, session_id }: PacketProps) {
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
        <dt>handed out</dt>
        <dd>
          <button type="button" class="link" onClick={() => store.goTo({ at: log_index, moves: 0 })}>
            with #{log_index}
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
          SHA-256 <code>{proof_sha256}</code> <small>the proof itself is written nowhere</small>
        </dd>
        <dt>packet</dt>
        <dd>
          SHA-256 <code>{sha256}</code>
        </dd>
        <dt>made of</dt>
        <dd>
          {materials.map((material) => (
            <Source material={material} key={material.sha256} />
          ))}
        </dd>
      </dl>
      <Words packet={packet} session_id={session_id} />
    </div>
  );
}

function Source({ material: { kind, log_index, sha256 } }: { readonly material: PacketMaterial }) {
  const store = useStore();
  return (
    <div>
      {kind === 'session_spec' ? 'the spec' : 'the review'} <code title={sha256}>{short(sha256)}</code> of{' '}
      <button
        type="button"
        class="link"
        onClick={() => store.change({ at: { at: log_index, moves: 0 }, own: false })}
      >{`#${log_index}`}</button>
    </div>
  );
}

function Words({ packet, session_id }: PacketProps) {
  const store = useStore();
  const [asked, setAsked] = useState(false);
  const gone = packet.materials.find(({ withheld }) => withheld !== null);
  if (gone?.withheld != null) return <Withheld why={gone.withheld} sha256={gone.sha256} />;
  if (asked || (reading.value && !store.isRecording)) return <Made packet={packet} session_id={session_id} />;
  return (
    <p>
      <button type="button" onClick={() => show(store, setAsked)}>
        Show what it says
      </button>{' '}
      {store.info.value?.live === true && <small>{RECORDED}</small>}
    </p>
  );
}

function Made({ packet, session_id }: PacketProps) {
  const store = useStore();
  const canHash = store.proof.phase.value !== 'impossible';
  const answer = useAnswer(
    `packet ${packet.log_index}`,
    () => madePacket(session_id, packet, (material) => bytesOf(store, material), canHash ? subtle : null),
    0,
  );
  if (answer.is === 'asking') return <p class="quiet">reading…</p>;
  if (answer.is === 'failed') return <p class="h-failed">It could not be read: {answer.why}</p>;
  if (answer.value === null) return <p class="quiet">What it was made of is not here.</p>;
  const { step, exact } = answer.value;
  return (
    <>
      {exact === true && <p class="h-completed strong">✓ made again here of what the entries name: it has its hash</p>}
      {exact === false && (
        <p class="h-failed strong">✕ made again here, it has another hash: this is NOT what the agent was handed</p>
      )}
      {exact === null && <p class="quiet">not hashed: needs https or loopback</p>}
      <Said step={step} />
    </>
  );
}

/** @throws Error for bytes that are not what the entry names */
async function bytesOf(store: Store, { log_index, sha256 }: PacketMaterial) {
  const bytes = await store.feed.artifact(log_index, sha256);
  if (bytes === null || store.proof.phase.value === 'impossible') return bytes;
  const entry = await store.event(log_index);
  if (entry !== null && namesContent(entry.text, sha256) && hex(await subtle(bytes)) === sha256) return bytes;
  throw new Error(`these bytes are not what entry #${log_index} names.`);
}

function Said({ step }: { readonly step: NextStep }) {
  return (
    <>
      {step.task_title !== null && (
        <p>
          <Untrusted text={step.task_title} whose="spec" />
        </p>
      )}
      <Untrusted text={step.instruction} whose="spec" block />
      {step.findings.map(({ severity, message, file, line }) => (
        <p>
          <b>{severity}</b> {file !== undefined && <Untrusted text={`${file}:${line ?? ''}`} whose="reviewer" />}{' '}
          <Untrusted text={message} whose="reviewer" />
        </p>
      ))}
      <ul class="tools">
        {step.instructions.map(({ tool, action, description }) => (
          <li>
            <code>{tool}</code> {action}: <Visible text={description} />
          </li>
        ))}
      </ul>
    </>
  );
}
