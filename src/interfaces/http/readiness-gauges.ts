// The gauges of readiness and of the ledger. The text of a gauge never contains content.

import type { Turnpike } from '../../host/turnpike.js';
import type { GaugeSource } from './metrics.js';

const MS_PER_SECOND = 1_000;

export function readinessGauges({ readiness, vitals }: Pick<Turnpike, 'readiness' | 'vitals'>): readonly GaugeSource[] {
  const one = (name: string, help: string, valueOf: () => number | Promise<number>): GaugeSource => ({
    name: `turnpike_${name}`,
    help,
    read: async () => new Map([['', await valueOf()]]),
  });
  return [
    one('ready', 'Whether every readiness check holds', async () => flag((await readiness.report()).isReady)),
    {
      name: 'turnpike_ready_check',
      help: 'Whether one readiness check holds',
      label: 'check',
      read: async () => {
        const { checks } = await readiness.report();
        return new Map(checks.map(({ name, reason }) => [name, flag(reason === null)]));
      },
    },
    one('ledger_failed', 'Whether a write to the ledger has failed, until a restart has recovered from it', () =>
      flag(vitals.condition().state !== 'running'),
    ),
    one(
      'disk_free_bytes',
      'Free space on the disk of the ledger; NaN if the disk is not known',
      () => vitals.freeBytes() ?? Number.NaN,
    ),
    one(
      'clock_offset_seconds',
      'How far the clock of the machine was set forward since the start; negative: back',
      () => Math.round(vitals.clockOffset() / MS_PER_SECOND),
    ),
  ];
}

const flag = (holds: boolean): number => (holds ? 1 : 0);
