// The interface of a campaign of `npm run campaign -- redteam`: see run.mjs.

export interface RedteamOptions {
  /** The seed of all random choices. */
  readonly seed: number;
  /** How long it attacks, approximately. Default: the campaign's own value. */
  readonly seconds?: number;
  /** Reports progress. */
  readonly say: (line: string) => void;
}

export interface RedteamResult {
  /** The measured figures, by name. */
  readonly figures: Readonly<Record<string, string | number>>;
  /** The violations, one sentence each. */
  readonly failures: readonly string[];
}

export type RedteamCampaign = (options: RedteamOptions) => Promise<RedteamResult>;
