import './snapshots.test.js';
