// 8 seeds, and 100 short histories; `npm run cluster:histories` runs more.
import './cluster-simulation.test.js';
