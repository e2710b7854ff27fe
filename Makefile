# The same names as ./dev's commands; ARGS="..." passes arguments on.
.PHONY: demo test soak lint bench lock venv
demo test soak lint bench lock venv:
	@./dev $@ $(ARGS)
