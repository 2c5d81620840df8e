SELECT scope, id, mode FROM dispatch_stop
