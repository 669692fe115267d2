// The type of the one part of prom-client that is loaded: all of it, with metrics of Node's that nobody asks for here, takes 90 ms of
// the processor at each start, this part 5.
declare module 'prom-client/lib/cluster.js' {
  import { AggregatorRegistry } from 'prom-client';

  export = AggregatorRegistry;
}
