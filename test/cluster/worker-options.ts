/** Faults that are planted in a worker, to see that the checks find them. */
export const WORKER_PLANTS = [
  'none',
  'no compare-and-set',
  'number before the locks',
  'effect before commit',
  'interrupted without proof',
  'guard without grace',
  'key by rename',
  'double integration',
  'signing before commit',
  'decided again after a cut',
] as const;
export type Plant = (typeof WORKER_PLANTS)[number];

/** What a worker process gets as its argument, as JSON. */
export interface WorkerOptions {
  readonly folder: string;
  readonly url: string;
  readonly schema: string;
  readonly name: string;
  /** Where it listens. */
  readonly address: string;
  readonly plant: Plant;
}
