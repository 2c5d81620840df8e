SELECT event_type, mode FROM callback_mode
