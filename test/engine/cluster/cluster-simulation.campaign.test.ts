// 8 seeds, and 100 short histories; `npm run campaign -- cluster-histories` runs more.
import './cluster-simulation.test.js';
