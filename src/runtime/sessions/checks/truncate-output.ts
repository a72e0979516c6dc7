import type { CommandRun } from '../../../ports/effects/command-runner.js';

/** Of the beginning, where a command says what it does, and of the end, where it says what came of it. */
const HEAD_BYTES = 16_384;
const TAIL_BYTES = 49_152;

/** What a command printed, as text for an agent: bytes that are no UTF-8 are U+FFFD. */
export function truncateOutput({ output, output_bytes, truncated }: CommandRun) {
  if (!truncated && output.length <= HEAD_BYTES + TAIL_BYTES) return { text: textOf(output), whole: true };
  // Of what is cut off already, the end is not known: then the beginning has all the room.
  const head = truncated ? HEAD_BYTES + TAIL_BYTES : HEAD_BYTES;
  const tail = truncated ? new Uint8Array() : output.subarray(-TAIL_BYTES);
  const left_out = output_bytes - Math.min(head, output.length) - tail.length;
  return {
    text: `${textOf(output.subarray(0, head))}\n[${left_out} bytes are left out]\n${textOf(tail)}`,
    whole: false,
  };
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
