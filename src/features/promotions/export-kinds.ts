/** The purposes of an export; the first one is the default. */
export const EXPORT_KINDS = [
  'internal_review',
  'discovery_production',
  'attorney_client_delivery',
  'court_filing_support',
  'expert_review',
  'backup_archive',
  'other',
] as const;
