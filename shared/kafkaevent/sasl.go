package kafkaevent

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

func (c Config) setSASL(s *sarama.Config) error {
	if c.SASLMechanism == "" {
		if c.SASLUsername != "" || c.SASLPassword.IsSet() ||
			c.SASLPasswordFile+c.SASLTokenFile+c.SASLTokenCommand+c.SASLTokenURL != "" {
			return errors.New("KAFKA_SASL_MECHANISM: is not set, and a name, password or token for it is")
		}
		return nil
	}
	sasl, mechanism := &s.Net.SASL, strings.ToUpper(c.SASLMechanism)
	sasl.Enable, sasl.Mechanism = true, sarama.SASLMechanism(mechanism)
	switch mechanism {
	case sarama.SASLTypePlaintext:
	case sarama.SASLTypeSCRAMSHA256:
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{cfg: c, hash: scram.SHA256} }
	case sarama.SASLTypeSCRAMSHA512:
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{cfg: c, hash: scram.SHA512} }
	case sarama.SASLTypeOAuth:
		var err error
		sasl.TokenProvider, err = c.tokens()
		return err
	default:
		return fmt.Errorf("KAFKA_SASL_MECHANISM: %q is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER", mechanism)
	}
	password, err := c.saslPassword()
	if err != nil {
		return err
	}
	sasl.User, sasl.Password = c.SASLUsername, password
	return nil
}

func (c Config) saslPassword() (string, error) {
	switch {
	case c.SASLUsername == "":
		return "", errors.New("KAFKA_SASL_USERNAME: is not set, and KAFKA_SASL_MECHANISM is")
	case !c.SASLPassword.IsSet() && c.SASLPasswordFile == "":
		return "", errors.New("KAFKA_SASL_PASSWORD: is not set, and KAFKA_SASL_MECHANISM is")
	case c.SASLPassword.IsSet() && c.SASLPasswordFile != "":
		return "", errors.New("KAFKA_SASL_PASSWORD: is set, and so is KAFKA_SASL_PASSWORD_FILE")
	case c.SASLPasswordFile == "":
		return c.SASLPassword.Reveal(), nil
	}
	text, err := os.ReadFile(c.SASLPasswordFile)
	if err != nil {
		return "", fmt.Errorf("KAFKA_SASL_PASSWORD_FILE: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// scramClient is one SCRAM conversation. It implements sarama's interface. Its password is that of this moment.
type scramClient struct {
	cfg  Config
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (c *scramClient) Begin(user, _, authzID string) error {
	password, err := c.cfg.saslPassword()
	if err != nil {
		return err
	}
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return fmt.Errorf("begin SCRAM: %w", err)
	}
	c.ClientConversation = client.NewConversation()
	return nil
}
