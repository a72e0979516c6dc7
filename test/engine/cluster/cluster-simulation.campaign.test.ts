// 15 seeds, and 200 short histories.
import './cluster-simulation.test.js';
